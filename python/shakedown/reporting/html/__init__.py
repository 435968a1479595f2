"""Saved results as one page, readable offline, with its figures beside it: a function of the table."""
