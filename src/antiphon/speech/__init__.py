"""Speech engines: what turns sound into words and words into sound, here or on another machine."""
