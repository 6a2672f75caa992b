"""Certified numerical privacy accounting."""
