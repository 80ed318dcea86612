"""The built-in tools: one directory each, compiled by `antiphon tools build`."""
