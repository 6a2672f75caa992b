"""Privacy filters: stop rules for runs whose next step may depend on everything seen so far.

A filter is asked before every step whether the step still fits, and what has passed it is private as a whole, however
the steps, their parameters and their number were chosen from earlier outputs. Adding up privacy loss distributions is
*no* such rule: each path of an adaptive run may have a composed curve within the budget while the run has not,
because the choice can be matched to the loss already suffered ("f-DP filters", 2026;
`docs/concepts/adaptive-composition.md` has an example). Two rules are valid:

- `RenyiFilter`: moments of a fixed order add up whatever the choices (Feldman and Zrnic 2021; Rogers et al. 2021). Of
  several orders each has its share of delta.
- `GaussianDPFilter`: mu_i-GDP steps with ``sum mu_i^2 <= mu^2`` are mu-GDP (Smith and Thakurta 2022; Koskela, Tobaben
  and Honkela 2023).

Guarantee: what passed satisfies the budget, rounding included: every cost is rounded up, every budget down. A step is
what is released about all records at once: individual filters are another matter. Derivations:
`docs/derivations/filters.md`.
"""

from __future__ import annotations

from hockeystick.filters.base import BudgetError, Filter
from hockeystick.filters.gaussian_dp import GaussianDPFilter
from hockeystick.filters.renyi import RenyiFilter

__all__ = ["BudgetError", "Filter", "GaussianDPFilter", "RenyiFilter"]
