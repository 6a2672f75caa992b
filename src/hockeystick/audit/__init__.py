"""Audits: what an attack saw, held against what was claimed.

An attack says of planted records (*canaries*) whether they were used. From how often it was right follows, at a stated
confidence, how private the run can be at most: a lower bound on epsilon, on mu, and on the whole privacy curve. A
certified curve says how private it is at least; where the two contradict each other, the claim is refuted.

Guarantee: with probability ``confidence`` over canaries and runs, everything an audit says at once is true
(docs/derivations/audit.md). It is a statistical statement, never a certificate. Cost: milliseconds to seconds.
"""

from hockeystick.audit.base import Audit, Verdict
from hockeystick.audit.many_runs import ManyRuns, counts, scores
from hockeystick.audit.one_run import OneRun, one_run, one_run_scores

__all__ = ["Audit", "ManyRuns", "OneRun", "Verdict", "counts", "one_run", "one_run_scores", "scores"]


def __dir__() -> list[str]:
    return __all__
