"""Quadrature nodes of a pair, without errors: what plans and published estimates look at.

Guarantee: none. Cost: none beyond the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.numerics.columns import Array

_LARGEST: Final = 1e70  # nats: fourth powers are taken, and multiplied by counts


@final
@dataclass(frozen=True)
class Nodes:
    """A quadrature rule for expectations over both distributions: ``E_P f(L) ~ sum_k e^{log_p_k} f(loss_k)``.

    Attributes
    ----------
    loss : ndarray, shape (k,)
        Finite losses (nats).
    log_p, log_q : ndarray, shape (k,)
        ``ln`` of the weights under P and Q.

    Raises
    ------
    PrecisionError
        For losses whose powers float64 does not hold.
    """

    loss: Array
    log_p: Array
    log_q: Array

    def __post_init__(self) -> None:
        size = float(np.abs(self.loss).max(initial=0.0))
        if size > _LARGEST:
            raise PrecisionError(
                f"losses of up to {size:.3g} nats are more than the {_LARGEST:g} whose powers float64 holds: epsilon is"
                " enormous; use more noise"
            )
