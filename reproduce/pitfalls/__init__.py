"""Figures and tables of 003, the pitfalls of subsampling."""
