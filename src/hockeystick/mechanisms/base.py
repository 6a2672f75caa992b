"""What a mechanism is: a step that can also be applied to a sample."""

from __future__ import annotations

from hockeystick.composition import Step
from hockeystick.sampling import Poisson

__all__ = ["Mechanism"]


class Mechanism(Step):
    """An unsampled mechanism: builds a dominating pair for a direction, nothing else."""

    def poisson(self, rate: float) -> Poisson:
        """This mechanism on a Poisson sample of the records.

        Parameters
        ----------
        rate : float
            Probability that a record takes part, in (0, 1].
        """
        return Poisson(self, rate)
