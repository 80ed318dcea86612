"""Sentence embeddings: vectors that are close to each other if the sentences mean nearly the same."""
