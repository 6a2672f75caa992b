"""Sums over the nodes of rules, by chunks, and over the rules of each run; and numbers of nodes that many rules share.

Guarantee: a term meets at most `additions` roundings.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from hockeystick.numerics.columns import Array, Places

_CHUNK = 64
_MANY = 512.0  # nodes whose number keeps three bits
_MOST = 2048.0  # and five


@functools.cache
def chunk(nodes: int) -> int:
    """How many nodes sums run over at a time, before they run over the chunks."""
    return max(_CHUNK, math.isqrt(nodes))


@functools.cache
def additions(nodes: int) -> int:
    """The number of roundings that a term meets, at most, in a sum over nodes by chunks."""
    size = chunk(nodes)
    return min(nodes, size) + -(-nodes // size)


def node_sum(terms: Array) -> Array:
    """The sum over the last axis, by chunks."""
    nodes = terms.shape[-1]
    if nodes <= _CHUNK:
        return np.asarray(terms.sum(axis=-1))
    return np.asarray(np.add.reduceat(terms, _starts(nodes), axis=-1).sum(axis=-1))


@functools.cache
def _starts(nodes: int) -> Places:
    """Where the chunks start."""
    starts = np.arange(0, nodes, chunk(nodes))
    starts.flags.writeable = False
    return starts


def few_bits_up(sizes: Array, among: float = 1.0) -> Array:
    """Whole numbers rounded up to two bits: many rules and lines then have as many nodes as others, and share calls.

    To three or five bits where they, times what is done at each, are large: there nodes cost more than calls.
    """
    if sizes.size == 1:  # the same on a float, ten times as fast
        size = sizes.item()
        done = size * among
        kept = (4 if done > _MOST else 2) if done > _MANY else 1
        step = math.ldexp(1.0, max(math.frexp(max(size, 1.0))[1] - 1 - kept, 0))
        return np.array(math.ceil(size / step) * step, ndmin=sizes.ndim)
    work = sizes * among
    bits = np.where(work > _MANY, np.where(work > _MOST, 4, 2), 1)
    unit = np.ldexp(1.0, np.maximum(np.frexp(np.maximum(sizes, 1.0))[1] - 1 - bits, 0))
    return np.asarray(np.ceil(sizes / unit) * unit)


def by_run(values: Array, runs: int) -> Array:
    """Numbers of rules, shape (..., B), summed over those of each run, shape (..., R)."""
    return values if values.shape[-1] == runs else values.sum(axis=-1, keepdims=True)
