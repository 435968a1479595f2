"""Saved results as one page for people, readable offline, with its figures beside it: a function of the
table.
"""
