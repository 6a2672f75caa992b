"""Figures and tables of comparisons of our own."""
