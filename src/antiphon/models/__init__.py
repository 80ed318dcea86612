"""The models that a session talks to, behind one seam."""
