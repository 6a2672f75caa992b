"""Doors into other frameworks: one file each, which imports its framework and is imported only when asked for.

Every adapter answers with the certified upper side, never less; what is not proved is refused in the framework's own
manner. None of the frameworks is a dependency: each is an extra of its name (``pip install 'hockeystick[opacus]'``).

``opacus``
    An accountant and a privacy engine for Opacus.
``dp_accounting``
    An accountant for dp-accounting.
``jax_privacy``
    Its configuration for jax-privacy.
``flower``
    An accountant of Flower's protocol.
``opendp``
    Privacy profiles for OpenDP, and curves from its measures.
``diffprivlib``
    A budget accountant for diffprivlib.
``dp_events``
    Events of dp-accounting to compositions and back; needs no framework to read them.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FRAMEWORKS"]

FRAMEWORKS: Mapping[str, str] = {
    "diffprivlib": "diffprivlib",
    "dp_accounting": "dp_accounting",
    "flower": "flwr",
    "jax_privacy": "jax_privacy",
    "opacus": "opacus",
    "opendp": "opendp",
}
"""Modules of this package that cannot be imported without a framework, and the package they import."""
