"""Spoken turns for the benchmarks: the texts, their audio, and the servers that hear them."""
