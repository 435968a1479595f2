"""Models as pure functions over arrays. Names contain units; docstrings name the source's equation."""
