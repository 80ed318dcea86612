"""Who may speak to the server, how often, and what a browser may do with its answers."""
