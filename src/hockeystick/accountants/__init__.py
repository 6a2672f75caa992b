"""Accountants: one file each, seeing pairs and never mechanisms."""

from hockeystick.lazy import attach

attach(__name__)
