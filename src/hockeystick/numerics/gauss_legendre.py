"""The Gauss-Legendre rule of 24 nodes.

Guarantee: nodes and weights are the floats nearest to the exact numbers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import U

ORDER = 24
"""Number of its nodes."""

NODE_ERROR = U
"""Bound on the absolute error of a node of the Gauss-Legendre rule on [-1, 1]."""

WEIGHT_ERROR = U
"""Bound on the relative error of its weights."""

# The positive nodes of the rule, decreasing, each with its weight: the floats nearest to the exact numbers.
_POSITIVE = (
    (0.9951872199970213, 0.0123412297999872),
    (0.9747285559713095, 0.028531388628933663),
    (0.9382745520027328, 0.04427743881741981),
    (0.8864155270044011, 0.05929858491543678),
    (0.820001985973903, 0.0733464814110803),
    (0.7401241915785544, 0.08619016153195327),
    (0.6480936519369755, 0.09761865210411388),
    (0.5454214713888396, 0.10744427011596563),
    (0.4337935076260451, 0.1155056680537256),
    (0.3150426796961634, 0.12167047292780339),
    (0.1911188674736163, 0.1258374563468283),
    (0.06405689286260563, 0.12793819534675216),
)


@lru_cache(maxsize=1)
def gauss_legendre() -> tuple[Array, Array]:
    """Nodes and weights of the rule of `ORDER` nodes on [-1, 1], the nodes increasing."""
    half, mass = np.array(_POSITIVE).T
    nodes, weights = np.concatenate((-half, half[::-1])), np.concatenate((mass, mass[::-1]))
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights
