"""The offline assistant: a text model that needs no network, no weights and no account."""

from antiphon.models.builtin.model import BuiltinModel

__all__ = ["BuiltinModel"]
