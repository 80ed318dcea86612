"""Model files: which ones exist, where they come from, and whether they are intact."""
