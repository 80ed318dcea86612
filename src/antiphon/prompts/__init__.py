"""What a model is told about itself: the parts, and the one way to put them together."""
