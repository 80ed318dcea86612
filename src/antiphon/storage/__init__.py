"""Stores: small Protocols in the modules here, and a package of implementations for each backend."""
