"""What lasts: small Protocols in `base`, one implementation a file."""
