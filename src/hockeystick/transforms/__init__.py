"""Transforms of a privacy loss: rules, their errors, K, and the saddle point."""
