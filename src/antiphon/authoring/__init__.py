"""Authoring of tools: reads tool directories, checks them, and compiles them into the registry that the gate loads.

A running server needs this package only to build; the gate in `antiphon.tools` never imports it.
"""
