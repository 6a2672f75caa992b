"""Certified numerical privacy accounting: how private a composition of mechanisms is."""

from hockeystick.lazy import attach

attach(__name__)
