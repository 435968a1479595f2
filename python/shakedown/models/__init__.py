"""The models: pure functions over arrays, units in their names, the source's equation in the docstring."""
