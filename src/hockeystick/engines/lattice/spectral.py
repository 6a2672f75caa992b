"""Composition in the frequency domain without transforms of the window's length: for many steps, equal or not.

What `compose.py` does by an FFT of the whole window for every distinct PLD is done on the few hundred lowest
frequencies, each a sum over the points that carry mass; the rest is bounded by pairing masses
(`streaming_spectrum.py`). Memory and time do not depend on the length of the window.

Guarantee: upper or lower as the lattices are, rounding included (`streaming.py`). Cost: points x kept products a
distinct PLD; memory 16 bytes a point and a kept frequency of every distinct PLD, about 15 kilobytes each.
"""

from __future__ import annotations

import math
from typing import final

from hockeystick.engines.lattice.compose import Parts, TiltedWindow
from hockeystick.engines.lattice.streaming import Frame, RunningComposition, RunningCurve
from hockeystick.engines.lattice.streaming_spectrum import TiltedStep, few_frequencies
from hockeystick.numerics.fft import smooth_length


@final
class SpectralComposition:
    """A composition of lattice PLDs of one side and spacing, on its lowest frequencies.

    Attributes
    ----------
    length : int
        Points of the window.
    kept : int
        Frequencies kept.
    curve : RunningCurve
        The curve, on the points of the lattice.
    """

    def __init__(self, composition: RunningComposition, frame: Frame) -> None:
        self.length, self.kept = frame.length, frame.kept
        self.curve: RunningCurve = composition.curve()

    @classmethod
    def of(cls, parts: Parts, window: TiltedWindow, *, deviation: float) -> SpectralComposition | None:
        """The composition, or None where high frequencies cannot be shown to be negligible: few steps, or few atoms.

        Parameters
        ----------
        parts : sequence of (LatticePLD, int)
            PLDs with their counts.
        window : TiltedWindow
            The tilt and the range of composed losses (nats).
        deviation : float
            About the standard deviation of the tilted composition (nats): what is negligible is judged by it.
        """
        spacing = parts[0][0].spacing
        length = smooth_length(math.ceil((window.high - window.low) / spacing) + 1)
        steps = [(TiltedStep(pld, window), count) for pld, count in parts]
        theta = window.theta
        expected = 1.0 / (theta * (1.0 + theta) * math.sqrt(2.0 * math.pi * (deviation**2 + theta**-2)))
        kept = few_frequencies([steps], window, spacing, length=length, expected=expected)
        if kept is None:
            return None
        frame = Frame(window, spacing, length=length, kept=kept)
        composition = RunningComposition(parts[0][0].side, frame)
        for step, count in steps:
            composition.add(composition.register(step.low(kept, length)), count)
        return cls(composition, frame)

    @property
    def delta_at_infinity(self) -> float:
        """Mass at infinity, rounded outward."""
        return self.curve.delta_at_infinity

    @property
    def slack(self) -> float:
        """Nats by which the true losses may lie beyond the lattice's: inside every answer."""
        return self.curve.slack

    def delta(self, epsilon: float) -> float:
        """The side's bound on delta at one epsilon (nats), in [0, 1]."""
        return self.curve.between(epsilon)
