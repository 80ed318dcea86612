"""The local voice: speech recognition, a text model and speech synthesis, as one `LiveModel`."""
