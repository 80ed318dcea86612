"""Writing tools: directories are read, checked and compiled into the registry that the gate loads.

A running server needs this package only to build; the gate in `antiphon.tools` never imports it.
"""
