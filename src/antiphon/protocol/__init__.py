"""The client's wire: messages, their text and binary forms, and what can be wrong with them. No input or output."""
