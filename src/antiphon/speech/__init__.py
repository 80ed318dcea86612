"""Speech engines: recognition and synthesis, in this process or on another machine."""
