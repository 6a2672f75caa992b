"""Is each claim tested? One-line changes that break a bound or a guarantee, and the tests that notice them.

``python -m mutants`` makes each change of the catalogue in a copy of the tree, one at a time, and runs the tests named
beside it: a change that no test notices is a claim that no test holds. The catalogue names code by function and
expression, so that moving or reformatting it changes nothing here.
"""
