"""Comparisons of the figures of two results folders or conditions, and of figures with budgets."""
