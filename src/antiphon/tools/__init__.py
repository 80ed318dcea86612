"""Tools: authored as directories, compiled into a versioned registry, run through one gate."""
