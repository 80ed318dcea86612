"""Model files: which there are, where they come from, and whether they are whole."""
