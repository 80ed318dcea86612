"""Finds out what a configured model can do, by using it."""
