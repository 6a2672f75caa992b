"""Mechanisms: one file each, building dominating pairs and nothing else. Each is loaded when first used."""

from hockeystick.lazy import attach

attach(__name__)
