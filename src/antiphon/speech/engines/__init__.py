"""The engines. Only the composition root names them."""
