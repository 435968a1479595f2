"""Comparisons: two results or conditions figure by figure, and figures against budgets."""
