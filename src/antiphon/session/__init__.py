"""A session: what happens between the user's words and the answer."""
