"""How times, places and numbers are said and heard: pure code that several tools share."""
