"""Figures and tables of 002, the Fourier accountant."""
