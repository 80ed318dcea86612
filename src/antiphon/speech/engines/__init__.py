"""The engines, one file each. They are named only where the house is put together."""
