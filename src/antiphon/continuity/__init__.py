"""How a conversation outlives its connections, models and modes."""
