"""The tools that ship: one directory each, compiled by `antiphon tools build`."""
