"""An independent checker: every number of a receipt, proved again by ball arithmetic alone.

It reads the specification inside the receipt (names, numbers, sampling, relation, counts), derives the densities
itself, and shares nothing with the accountants: no pairs, no numerics, not ``exact``. So a wrong pair is caught too.

*Pairs.* A record moves a sum by at most 1 under add-remove and zero-out and by at most 2 under substitution (and when
it pushes another record out of a batch of fixed size). With Q0 the noise, P0 the noise moved, ``u = ln dP0/dQ0`` and
``r = 1 - g + g e^u``: *remove* and zero-out (r Q0, Q0), *add* and zero-in the reverse; no sampling is g = 1. For a
batch of fixed size under substitution the pair joins remove's losses above 0 to add's below 0, an atom at 0 between
(docs/derivations/fixed-size.md); noise is symmetric there, so that add's losses are ``-ln r`` on {u > 0} under Q0. A
Poisson sample under substitution: even, log-concave noise on signed values takes shifts of 1 and of -1 at rate g
against each other; counts and randomised response are joined as for a batch of fixed size.

*Curve.* With ``M(z) = prod_k E_{P_k} e^{zL}``, ``z_m = theta + imh``, ``Lambda = 2 pi / h``, Poisson summation gives

    (h/2 pi) sum_m M(z_m) e^{-z_m eps} / (z_m (1 + z_m)) = sum_j e^{j theta Lambda} delta_fin(eps + j Lambda),

all terms at least 0. *Aliasing*: the terms j < 0 sum to at most ``1 / (e^{theta Lambda} - 1)``, as delta <= 1. Those
j > 0 obey ``delta_fin(y) <= t^t (1+t)^{-1-t} M(t) e^{-ty}`` at one tilt t > theta: a geometric series; beyond the
largest loss they are 0. *Tail*: ``|z(1+z)| >= theta^2 + s^2``, so the terms beyond ``S = Nh`` sum to at most
``e^{-theta eps} B arctan(theta/S) / (pi theta)``, ``B >= |M(theta + is)|`` for all s >= S. B is the product of the
steps' bounds:

- mixtures: on the line Im x = y, the side chosen such that ``v = arg p - arg q >= 0``, the integrand's modulus is
  ``|...| e^{-sv}``, which falls with s: its integral at S, by ``acb.integral`` of ``(F(x+iy) conj F(x-iy))^{1/2}``;
- a density G in the loss has ``|int G e^{isL} dL| <= V/s``, V its variation, jumps at the ends included. Laplace: ``G ~
  e^{-3y} r^c`` falls and then rises, or falls: V <= 2 (G(0) + G(m)); joined Gaussian: ``int |G'|`` term by term;
- else ``|M(theta + is)| <= M(theta)``.

*Random allocation* of Gaussian noise, one round, and bins that stay fixed: `independent/allocation.py`.

The moments of mixtures are integrals on such a line, too, which no singularity parts from the real one.

*Discrete steps* are convolved instead: lattices as polynomials, others by multinomials. *Gaussians* alone, *Laplace*
steps without sampling, alone or beside discrete ones, and *one step*, have closed forms. *Epsilon* by two signs:
``delta(lower) >= delta >= delta(upper)``.

Trust rests on python-flint and on this file. What is not reached is said, never passed over.
"""

from hockeystick.independent.verdict import CONTRADICTED, NOT_REACHED, PROVED, Finding, check

__all__ = ["CONTRADICTED", "NOT_REACHED", "PROVED", "Finding", "check"]
