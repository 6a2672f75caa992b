"""Side-by-side measurements against other privacy accountants, run by ``make bench``."""
