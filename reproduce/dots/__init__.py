"""Figures and tables of 000, connect the dots."""
