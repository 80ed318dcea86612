"""The local voice: ears, a text model, and a mouth, put together as one `LiveModel`."""
