"""The laws of one continuous step: transforms, their bounds far out, closed forms."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from flint import acb, arb, ctx

from hockeystick.independent.balls import UnreachedError, coarse_integral, disc, integral, normal_tail, precision, real


class Law:
    """``E_P e^{zL}`` of one step; infinite: P's mass at loss infinity; limit: the supremum of the finite losses."""

    infinite: Any = Fraction(0)
    limit: Any = None

    def moment(self, z: Any, size: Any = 1) -> Any:
        """``E_P e^{zL}`` where the loss is finite; size: about the moment at Re z, to which errors are relative."""
        raise NotImplementedError

    def tail(self, theta: Fraction, s: Any) -> Any:
        """At least ``|moment(theta + it)|`` for every t >= s."""
        return abs(self.moment(acb(real(theta))))

    def one_step(self, epsilon: Any) -> Any:
        """Delta of one step by closed form, without the mass at infinity; None where there is none."""
        return None


_ASIDE = 2.0  # from the real line, where e^{y^2/2} is all that it costs


class Mixture(Law):
    """``sum w_k N(c_k, 1)`` against ``sum v_k N(d_k, 1)``: p and q are the densities over N(0, 1)'s."""

    def __init__(self, p: dict[Fraction, Fraction], q: dict[Fraction, Fraction]) -> None:
        self.p, self.q = sorted(p.items()), sorted(q.items())
        centres = [c for side in (self.p, self.q) for c, _ in side]
        self.reach = max(map(abs, centres))
        self.spread = max(side[-1][0] - side[0][0] for side in (self.p, self.q))
        several = [abs(c) for side in (self.p, self.q) for c, _ in side if len(side) > 1]
        # the logarithms keep off their cut
        self.widest = math.pi / float(max([self.spread, *several, Fraction(1, 10**6)]))
        low_p, high_p, low_q, high_q = self.p[0][0], self.p[-1][0], self.q[0][0], self.q[-1][0]
        self.side = 1 if low_p >= high_q else -1  # the loss rises, or falls, with x
        if self.side < 0 and not high_p <= low_q:
            raise UnreachedError("centres of P and Q interleave")
        top_p, top_q = (self.p[-1], self.q[-1]) if self.side > 0 else (self.p[0], self.q[0])
        if top_p[0] == top_q[0]:
            self.limit = (real(top_p[1]) / real(top_q[1])).log()
        self.shift = self.p[0][0] - self.q[0][0] if len(self.p) == len(self.q) == 1 else None
        self._fixed = [sum((real(w) for c, w in side if c == 0), real(0)) for side in (self.p, self.q)]
        self._terms = [
            [(real(c), real(w).log() - real(c * c) / 2) for c, w in side if c != 0] for side in (self.p, self.q)
        ]

    def _log(self, side: int, x: Any, analytic: bool) -> Any:
        terms, fixed = self._terms[side], self._fixed[side]
        if not terms:
            return acb(0) if fixed == 1 else acb(fixed.log())
        if len(terms) == 1:
            ((c, w),) = terms
            return x * c + w if fixed == 0 else ((x * c + w).exp() + fixed).log(analytic=analytic)
        return sum(((x * c + w).exp() for c, w in terms), fixed).log(analytic=analytic)

    def _integrand(self, z: Any, x: Any, analytic: bool) -> Any:
        p, q = self._log(0, x, analytic), self._log(1, x, analytic)
        return p + z * (p - q) - x * x / 2

    def _cut(self, theta: Any, y: Any) -> tuple[Any, Any]:
        """X such that the two tails of the integral of the modulus on Im x = y are below the bound returned with it.

        For x > 0: p <= e^{Cx}, C the largest |centre|, and q is at least its last term, times cos(y spread / 2).
        """
        c = real(self.reach)
        least = real(min(self.q[0][1], self.q[-1][1]))
        slope = (1 + 2 * theta) * c
        size = theta * (c * c / 2 - least.log() - (y * real(self.spread) / 2).cos().log()) + y * y / 2
        x = slope + (2 * (ctx.prec * arb(2).log() + abs(size) + slope * slope / 2) + 1).sqrt()
        x = arb(math.ceil(float(x.upper())))
        return x, (size + slope * slope / 2).exp() * 2 * normal_tail(x - slope)

    def moment(self, z: Any, size: Any = 1) -> Any:
        if self.shift is not None:
            return (z * (1 + z) * real(self.shift) ** 2 / 2).exp()
        # beside the real line, by Cauchy: there the integrand falls with z's imaginary part in place of turning
        y = arb(min(0.5 * self.widest, _ASIDE) if z.imag > 0 else 0.0) * self.side
        cut, rest = self._cut(z.real, y)
        shift = acb(0, y)
        value = integral(lambda x, analytic: self._integrand(z, x + shift, analytic).exp(), -cut, cut, size)
        return value / (2 * real(0).pi()).sqrt() + disc(rest)

    def tail(self, theta: Fraction, s: Any) -> Any:
        if self.shift is not None:
            return ((real(theta * (1 + theta)) - s * s) * real(self.shift) ** 2 / 2).exp()
        best = super().tail(theta, s)
        z, zc = acb(real(theta), s), acb(real(theta), -s)
        with precision(40):
            for share in (0.03, 0.08, 0.18, 0.32, 0.5, 0.7, 0.88):
                y = arb(min(share * self.widest, 12.0)) * self.side
                shift = acb(0, y)

                def modulus(x: Any, analytic: bool, shift: Any = shift) -> Any:
                    above = self._integrand(z, x + shift, analytic)
                    if x.imag == 0:  # the other one is its conjugate
                        return acb(above.real.exp())
                    return ((above + self._integrand(zc, x - shift, analytic)) / 2).exp()

                cut, rest = self._cut(real(theta), y)
                value = coarse_integral(modulus, -cut, cut)
                value = abs(value) / (2 * arb.pi()).sqrt() + rest
                best = best.min(value) if value.is_finite() else best
        return best.upper()

    def one_step(self, epsilon: Any) -> Any:
        """P(x > t) - e^eps Q(x > t), t the root of L = eps, which lies between two points of proved signs."""

        def loss(x: Fraction) -> Any:
            at = real(x)
            return self._log(0, acb(at), analytic=False).real - self._log(1, acb(at), analytic=False).real - epsilon

        def beyond(side: int, t: Any) -> Any:
            pairs = (self.p, self.q)[side]
            return sum(real(w) * normal_tail(self.side * (t - real(c))) for c, w in pairs)

        low, high = -(Fraction(2) ** 12) * self.side, Fraction(2) ** 12 * self.side
        if loss(high) < 0:
            return arb(0).union(beyond(0, real(high)))
        if not loss(low) < 0:
            return None
        for _ in range(2 * ctx.prec + 16):
            middle = low + (high - low) * Fraction(3, 7)  # never a dyadic root, whose sign no ball decides
            sign = loss(middle)
            if sign > 0:
                high = middle
            elif sign < 0:
                low = middle
            else:
                break
        t = real(low).union(real(high))
        return beyond(0, t) - epsilon.exp() * beyond(1, t)


class Powers(Law):
    """Laws of ``r = 1 - g + g e^u``: remove takes r^{1+z}, add r^{-z}, joined both over {u > 0} and an atom at 0.

    Mirrored Laplace noise: both over {x > 0}, where the noise moved the other way has the loss -m throughout.
    """

    def __init__(self, shift: Fraction, g: Fraction, kind: str) -> None:
        self.m, self.g, self.kind = real(shift), real(g), kind

    def r(self, u: Any) -> Any:
        """The likelihood ratio on a sample, of the base loss u."""
        return (u.exp() - 1) * self.g + 1

    def _powers(self, z: Any) -> list[Any]:
        return {"remove": [1 + z], "add": [-z]}.get(self.kind, [1 + z, -z])


class Laplace(Powers):
    """Under Q0 the losses u are -m (mass 1/2), m (mass e^-m / 2) and 2y - m, y of density e^-y / 2 on (0, m)."""

    def __init__(self, shift: Fraction, g: Fraction, kind: str) -> None:
        super().__init__(shift, g, kind)
        self.shift, self.is_plain = shift, g == 1 and kind != "joined"
        if g == 1:
            self.limit = shift
        else:
            self.limit = -self.r(-self.m).log() if kind == "add" else self.r(self.m).log()
        if kind == "mirrored":
            self.limit -= self.r(-self.m).log()
        self.start = self.m / 2 if kind == "joined" else real(0)

    def _ends(self, w: Any) -> Any:
        """The atoms of the noise at u = m and, where it counts, u = -m."""
        top = (w * self.r(self.m).log() - self.m).exp() / 2
        return top if self.kind in {"joined", "mirrored"} else top + (w * self.r(-self.m).log()).exp() / 2

    def _beside(self, w: Any) -> Any:
        """The power of Y's density over the noise's, or of X's, that comes with r^w."""
        return ((1 - w) * self.r(-self.m).log()).exp() if self.kind == "mirrored" else 1

    def _centre(self) -> Any:
        return (1 - self.g) * (1 - (-self.m / 2).exp()) if self.kind == "joined" else 0  # 1 - 2 Q0(u > 0)

    def moment(self, z: Any, size: Any = 1) -> Any:
        total = acb(self._centre())
        for w in self._powers(z):
            if self.g == 1:
                k = 2 * w - 1
                inner = (((k - w) * self.m).exp() - ((k * self.start) - w * self.m).exp()) / k
            else:

                def inside(y: Any, analytic: bool, w: Any = w) -> Any:
                    return (self.r(2 * y - self.m).log(analytic=analytic) * w - y).exp()

                inner = integral(inside, self.start, self.m, size)
            total += self._beside(w) * (self._ends(w) + inner / 2)
        return total

    def tail(self, theta: Fraction, s: Any) -> Any:
        bound = self._centre() + real(0)
        for w in self._powers(real(theta)):

            def density(y: Any, w: Any = w) -> Any:
                u = 2 * y - self.m
                return (self.r(u).log() * (w + 1) - y - u).exp() / (4 * self.g)

            bound += self._beside(w) * (self._ends(w) + 2 * (density(self.start) + density(self.m)) / s)
        return bound.min(super().tail(theta, s)).upper()

    def one_step(self, epsilon: Any) -> Any:
        if self.kind == "joined":
            return None
        a = epsilon.exp()
        if self.kind == "mirrored":
            return self._mirrored(a)
        at = ((a if self.kind == "remove" else 1 / a) - 1 + self.g) / self.g
        if not at > 0:  # remove: everything counts, add: nothing
            return None if not at < 0 else 1 - a if self.kind == "remove" else real(0)
        y = (at.log() + self.m) / 2  # remove: what lies above counts, add: below
        if not (y > 0 and y < self.m):
            return None
        q, p = (-y).exp() / 2, 1 - (y - self.m).exp() / 2
        if self.kind == "remove":
            return (1 - self.g - a) * q + self.g * p
        return (1 - a * (1 - self.g)) * (1 - q) - a * self.g * (1 - p)

    def _mirrored(self, a: Any) -> Any:
        """What lies above y, where the loss ``ln r(2y - m) - ln r(-m)`` is epsilon; None but for y in (0, m)."""
        at = (a * self.r(-self.m) - 1 + self.g) / self.g
        y = (at.log() + self.m) / 2 if at > 0 else at
        if not (y > 0 and y < self.m):
            return None
        still, off, on = (-y).exp() / 2, (-y - self.m).exp() / 2, 1 - (y - self.m).exp() / 2
        return (1 - a) * (1 - self.g) * still + self.g * (on - a * off)


class JoinedNormal(Powers):
    """Batches of fixed size under substitution, Gaussian noise: u = m x - m^2 / 2, x > m/2 under N(0, 1)."""

    def _base(self, x: Any) -> Any:
        return self.m * x - self.m * self.m / 2

    def _centre(self) -> Any:
        return (1 - self.g) * (1 - 2 * normal_tail(self.m / 2))

    def _cut(self, theta: Any) -> tuple[Any, Any]:
        """On x > m/2, 1 <= r <= e^{mx}: beyond X lies at most e^{b^2/2} (tail at X - b), b = (3 + theta) m."""
        b = (3 + theta) * self.m
        x = arb(math.ceil(float((self.m + b + (2 * ctx.prec * arb(2).log() + b * b + 1).sqrt()).upper())))
        return x, (b * b / 2).exp() * normal_tail(x - b)

    def moment(self, z: Any, size: Any = 1) -> Any:
        cut, rest = self._cut(z.real)
        root = (2 * real(0).pi()).sqrt()

        more = 1 + z

        def f(x: Any, analytic: bool) -> Any:
            log = self.r(self._base(x)).log(analytic=analytic)
            return ((log * more).exp() + (-log * z).exp()) * (-x * x / 2).exp() / root

        return integral(f, self.m / 2, cut, size) + disc(2 * rest) + self._centre()

    def tail(self, theta: Fraction, s: Any) -> Any:
        """V of ``G = N r^{w+1} / (m g e^u)``: its value at the start, and ``|G'| <= G (x + m + |w+1| m q)``, q <= 1."""
        root, bound = (2 * real(0).pi()).sqrt(), self._centre()
        cut, _ = self._cut(real(theta))
        for w in self._powers(real(theta)):

            def density(x: Any, analytic: bool, w: Any = w) -> Any:
                u = self._base(x)
                return (self.r(u).log(analytic=analytic) * (w + 1) - x * x / 2 - u).exp() / (root * self.m * self.g)

            def slope(x: Any, analytic: bool, w: Any = w, density: Any = density) -> Any:
                u = self._base(x)
                return density(x, analytic) * (x + self.m + abs(w + 1) * self.m * self.g * u.exp() / self.r(u))

            # beyond the cut: e^{-u} <= 1 there, and the linear factor is below e^x
            far = ((3 + real(theta)) * self.m + 1) ** 2 / 2
            outer = far.exp() * normal_tail(cut - (3 + real(theta)) * self.m - 1) * (1 + self.m * (3 + real(theta)))
            variation = abs(coarse_integral(slope, self.m / 2, cut)) + outer / (self.m * self.g)
            bound += (abs(density(acb(self.m / 2), analytic=False)) + variation) / s
        return bound.min(super().tail(theta, s)).upper()
