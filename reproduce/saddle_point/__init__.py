"""Figures and tables of 004, the saddle-point accountant."""
