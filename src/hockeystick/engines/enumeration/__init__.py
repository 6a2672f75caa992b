"""Certified curves of few outcomes, each of them listed."""
