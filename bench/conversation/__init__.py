"""Spoken turns for benches: what is said, how it sounds, and whom it is said to."""
