"""The lists and notes of people."""

from antiphon.services.lists.user_lists import offer_lists

__all__ = ["offer_lists"]
