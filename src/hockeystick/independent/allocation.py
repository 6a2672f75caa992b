"""One round of random allocation of Gaussian noise, or fixed bins: the record is in one of t steps, uniformly.

With ``W = e^{mx - m^2/2}``, x ~ N(0, 1), and S the sum of t of them, remove has delta = E (S - k)+ / t at ``k = t
e^eps``, add has ``e^eps E (k - S)+ / t`` at ``k = t e^-eps``, and ``E (S - k)+ = p(k) + t - k``, ``p(k) = E (k - S)+``.
With ``phi(z) = E e^{-zW}``, c > 0 and Lambda = 2 pi / h, Poisson summation of ``e^{-cy} p(y)`` gives

    (h / 2 pi) sum_n e^{z_n k} phi(z_n)^t / z_n^2 = sum_j e^{-jc Lambda} p(k + j Lambda),    z_n = c + inh,

all terms at least 0, none with j < 0 as Lambda > k is chosen; as p(y) <= y those with j > 0 are at most ``(k + Lambda /
(1 - q)) q / (1 - q)``, q = e^{-c Lambda}. *phi* by ``acb.integral`` on the path Im x = -v, ``2 v m <= pi / 2``: there
``Re zW >= 0`` for z in the first quadrant, so that beyond X lies at most ``e^{v^2/2}`` times a normal tail. *Tail*:
turned by an angle a, ``|phi(c + is)| <= e^{a^2 / 2 m^2} phi(c cos a + s sin a)``, which falls with s.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import acb, arb, ctx

from hockeystick.independent.balls import UnreachedError, disc, integral, normal_tail, precision, real
from hockeystick.independent.laws import Law

_MOST_NODES = 1500
_ANGLES = (0.02, 0.06, 0.15, 0.3, 0.5, 0.8, 1.1, 1.4, 1.55)


class Allocated(Law):
    """One round of t steps; m^2 a fraction; add has the reverse."""

    def __init__(self, shift_squared: Fraction, steps: int, kind: str) -> None:
        self.square, self.steps, self.kind = shift_squared, steps, kind

    def moment(self, z: Any, size: Any = 1) -> Any:
        raise UnreachedError("no transform of the loss of a round of random allocation is known")

    def one_step(self, epsilon: Any) -> Any:
        """Delta of one round."""
        t, bits = self.steps, 64 * math.ceil(ctx.prec / 64)
        a = epsilon.exp()
        k = t * a if self.kind == "remove" else t / a
        size = float(k)
        accuracy = ctx.prec * math.log(2.0) - math.log(size if self.kind == "add" else t)
        c, h, count, room = _plan(self.square, t, Fraction(size), math.ceil(accuracy))
        with precision(bits + 64 * math.ceil(max(room, 0.0) / 40.0)):
            values, beyond = _line(self.square, t, c, h, count, ctx.prec)
            p = _put(values, beyond, real(c), real(h), k)
            return (p + t - k) / t if self.kind == "remove" else a * p / t


def _put(values: list[Any], beyond: Any, c: Any, h: Any, k: Any) -> Any:
    """p(k)."""
    scale, period = (c * k).exp(), 2 * arb.pi() / h
    if not period > k:
        raise UnreachedError("the copies of a round's curve overlap")
    total = values[0].real / 2
    for n, value in enumerate(values[1:], start=1):
        total += (value * acb(0, h * k * n).exp()).real
    q = (-c * period).exp()
    added = (k + period / (1 - q)) * q / (1 - q)
    cut = beyond * scale / (arb.pi() * h * (len(values) - 1))
    return total * scale * h / arb.pi() + arb(0, cut.upper()) - arb(0).union(added.upper())


@lru_cache(maxsize=16)
def _line(square: Fraction, t: int, c: Fraction, h: Fraction, count: int, bits: int) -> tuple[list[Any], Any]:
    """``phi(z_n)^t / z_n^2``, and at least ``|phi|^t`` beyond the last; bits are the working precision."""
    points = [acb(real(c), real(h) * n) for n in range(count)]
    values = [_phi(square, z, bits) ** t / (z * z) for z in points]
    m, s, best = real(square).sqrt(), real(h) * (count - 1), arb(1)
    for angle in map(arb, _ANGLES):
        z = real(c) * angle.cos() + s * angle.sin()
        best = best.min(((angle / m) ** 2 / 2).exp() * abs(_phi(square, acb(z), bits)))
    return values, (best**t).upper()


def _phi(square: Fraction, z: Any, bits: int) -> Any:
    """``E e^{-zW}``, z in the first quadrant."""
    m = real(square).sqrt()
    v = Fraction(round(2**20 * min(0.78 / math.sqrt(square), 2.0)), 2**20)
    if not 2 * real(v) * m < arb.pi() / 2:
        raise UnreachedError("the path would leave the half-plane")
    end = math.ceil(math.sqrt(2.0 * bits * math.log(2.0)) + float(v)) + 1
    root, shift, half = (2 * arb.pi()).sqrt(), acb(0, real(v)), m * m / 2

    def f(x: Any, _: bool) -> Any:
        w = x - shift
        return (-w * w / 2 - z * (m * w - half).exp()).exp() / root

    rest = 2 * (real(v * v) / 2).exp() * normal_tail(real(end))
    return integral(f, -end, end) + disc(rest)


@lru_cache(maxsize=256)
def _plan(square: Fraction, t: int, k: Fraction, accuracy: int) -> tuple[Fraction, Fraction, int, float]:
    """Tilt, step, nodes, and how far the integrand's peak is above what is wanted (nats): estimates, no proof.

    Tilts and steps are powers of two, or nearly: near points share a line.
    """
    m, size = math.sqrt(square), float(k)
    grid = [(-12.0 + 0.08 * j) for j in range(301)]
    mass = [0.08 * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) for x in grid]
    ratio = [math.exp(min(m * x - 0.5 * m * m, 600.0)) for x in grid]

    def log_phi(z: float) -> float:
        return math.log(max(sum(p * math.exp(-z * r) for p, r in zip(mass, ratio, strict=True)), 1e-300))

    best: tuple[float, tuple[Fraction, Fraction, int, float]] | None = None
    low = math.floor(math.log2(1.0 / size))
    for exponent in range(low - 1, low + 20):
        c = 2.0**exponent
        height = t * log_phi(c) + c * size - 2.0 * exponent * math.log(2.0)
        period = max((accuracy + 6.0 + 2.0 * math.log(size + 1.0)) / c, 1.05 * size)
        step = 2.0 ** (math.floor(4.0 * math.log2(2.0 * math.pi / period)) / 4.0)

        def reaches(s: float, c: float = c) -> bool:  # and beyond, as the bound falls
            turned = (0.5 * (a / m) ** 2 + log_phi(c * math.cos(a) + s * math.sin(a)) for a in _ANGLES)
            return any(t * bound + c * size - math.log(s) < -accuracy - 2.0 for bound in (0.0, *turned))

        ends = [4.0 * step]
        while ends[-1] < _MOST_NODES * step:
            ends.append(1.4 * ends[-1])
        count = math.ceil(ends[bisect_left(ends, x=True, hi=len(ends) - 1, key=reaches)] / step) + 1
        room = height + accuracy
        cost = count * (1.0 + max(room, 0.0) / 60.0) ** 2
        if count < _MOST_NODES and (best is None or cost < best[0]):
            h = Fraction(round(step * 2.0**60), 2**60) if step > 2.0**-30 else Fraction(step)
            best = cost, (Fraction(2) ** exponent, h, count, room)
        if room > 1500.0:
            break
    if best is None:
        raise UnreachedError("a round of random allocation with this noise takes too many points")
    return best[1]
