"""Discrete losses in Fourier sums that lie below and above delta: lines whose band is limited."""
