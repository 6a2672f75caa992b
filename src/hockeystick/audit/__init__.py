"""Audits: what an attack saw, held against what was claimed.

An attack says of planted records (*canaries*) whether they were used. From how often it was right follows, at a stated
confidence, how private the run can be at most: a lower bound on epsilon, on mu, and on the whole privacy curve. A
certified curve says how private it is at least; where the two contradict each other, the claim is refuted.

Guarantee: with probability ``confidence`` over canaries and runs, everything an audit says at once is true
(docs/derivations/audit.md). It is a statistical statement, never a certificate. Cost: milliseconds to seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick.audit.base import Audit as Audit
    from hockeystick.audit.base import Verdict as Verdict
    from hockeystick.audit.many_runs import ManyRuns as ManyRuns
    from hockeystick.audit.many_runs import counts as counts
    from hockeystick.audit.many_runs import scores as scores
    from hockeystick.audit.one_run import OneRun as OneRun
    from hockeystick.audit.one_run import one_run as one_run
    from hockeystick.audit.one_run import one_run_scores as one_run_scores

attach(
    __name__,
    {
        "hockeystick.audit.base": "Audit Verdict",
        "hockeystick.audit.many_runs": "ManyRuns counts scores",
        "hockeystick.audit.one_run": "OneRun one_run one_run_scores",
    },
)
