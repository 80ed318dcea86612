"""The client protocol: messages, their text and binary forms, and their errors. No input or output."""
