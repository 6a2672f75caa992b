"""jax-privacy: its accountant configuration, with certified epsilons.

jax-privacy describes training by events of dp-accounting. Where it asks for an accountant (or a function from a
relation to one), give `hockeystick.integrations.dp_accounting.HockeystickAccountant`; where it asks for a
configuration, `HockeystickAccountantConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass

from jax_privacy.accounting.accountants import DpAccountantConfig

from hockeystick.integrations.dp_accounting import HockeystickAccountant


@dataclass(kw_only=True)
class HockeystickAccountantConfig(DpAccountantConfig):
    """In place of ``PldAccountantConfig`` or ``RdpAccountantConfig``; as theirs, for a record added or removed.

    Parameters
    ----------
    tolerance : float
        Width of the epsilon bracket asked for (nats).
    """

    tolerance: float = 1e-3

    def create_accountant(self) -> HockeystickAccountant:
        return HockeystickAccountant(tolerance=self.tolerance)
