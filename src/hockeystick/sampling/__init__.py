"""Sampling: how the records of one step are chosen, and what that does to its dominating pair.

For a base mechanism whose pair under *remove* is (P, Q), and (P_s, Q_s) under *substitute*, with rate g:

================  ======================  ======================  =======================  =========================
sampling          remove                  add                     substitute               zero-out, zero-in
================  ======================  ======================  =======================  =========================
none              (P, Q)                  (Q, P)                  (P_s, Q_s)               as remove, add
Poisson           ((1-g)Q + gP, Q)        its reverse             moved either way, or     as remove, add
                                                                  joined
fixed size b/n    ((1-g)Q_s + gP_s, Q_s)  its reverse             joined (`laws.joined`)   refused
shuffled batches  refused                 refused                 (P_s, Q_s) an epoch      (P, Q), (Q, P) an epoch
random allocation mean of products        its reverse             refused                  as remove, add
balls in bins     the same, for the run   its reverse             refused                  as remove, add
cut Poisson       labelled mixture        its reverse             refused                  refused
micro-batches     mixture of shifts       its reverse             refused                  as remove, add
================  ======================  ======================  =======================  =========================

Sources: Poisson and fixed size under add and remove, 003's Theorem 10 (Zhu, Dong and Wang 2022, Theorem 11); under
substitute, 003's Theorem 15, and its Proposition 13 carried on from Gaussian to all even log-concave noise; shuffled
batches, Chua et al. 2024; random allocation, Feldman and Shenfeld 2025; balls in bins, Chua et al. 2025. Derived anew,
with the last two, in docs/derivations/fixed-size.md,
shuffling.md, random-allocation.md and cut-batches.md; in words in docs/concepts/sampling.md.

A scheme is one file and one line of `SCHEMES`: a class derived from `Sampled`, which gives its pairs, its parameters
and its words. Specifications, the command line, reports and cautions know a scheme through these alone.
"""

from __future__ import annotations

from hockeystick.sampling.balls_in_bins import BallsInBins
from hockeystick.sampling.base import Samplable, Sampled
from hockeystick.sampling.cut_batches import CutBatches
from hockeystick.sampling.fixed_size import WithoutReplacement
from hockeystick.sampling.micro_batches import MicroBatches
from hockeystick.sampling.poisson import Poisson
from hockeystick.sampling.random_allocation import RandomAllocation
from hockeystick.sampling.shuffled import Shuffled

__all__ = [
    "SCHEMES",
    "BallsInBins",
    "CutBatches",
    "MicroBatches",
    "Poisson",
    "RandomAllocation",
    "Samplable",
    "Sampled",
    "Shuffled",
    "WithoutReplacement",
]

SCHEMES: tuple[type[Sampled], ...] = (
    Poisson,
    WithoutReplacement,
    Shuffled,
    RandomAllocation,
    BallsInBins,
    CutBatches,
    MicroBatches,
)
"""Every scheme; in a file it has the name of its class, ``without-replacement`` for `WithoutReplacement`."""
