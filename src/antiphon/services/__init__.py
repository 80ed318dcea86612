"""What tools use: stores, engines and services of others, behind the Protocols of `tools/capabilities/`."""
