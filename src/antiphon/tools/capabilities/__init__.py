"""What tools can use: one Protocol for each capability. `services/` implements them; a handler's test passes a fake."""
