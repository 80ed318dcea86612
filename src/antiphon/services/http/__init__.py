"""How services reach others over HTTP: one client, and one set of errors with sentences for the user."""
