"""What every proof assumes of numpy, scipy and the C library: one row an assumption, with how it is measured.

`docs/concepts/assumptions.md` says the same in words; a test compares the two. The constants are those of
`hockeystick.numerics.rounding`, which the proofs use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast, final

import numpy as np
from flint import arb

from hockeystick.numerics.rounding import (
    ELEMENTARY,
    ERF,
    ERFCX,
    FFT_LEVEL,
    LOG_NDTR,
    POWER_STEP,
    SUBNORMAL,
    TINY,
    TRIGONOMETRIC,
    U,
)
from hockeystick.selfcheck.elementwise import (
    Array,
    Function,
    Points,
    both_signs,
    complex_numbers,
    logarithmic,
    mixed,
    near,
    paired,
    uniform,
)
from hockeystick.selfcheck.sums import (
    Inverse,
    LogSum,
    Power,
    Sum,
    Transform,
    Ways,
    binned,
    conjugated_products,
    dots,
    one_list,
    pieces,
    plain,
    products,
    running,
    whole,
)


class Measure(Protocol):
    """A way to measure a function."""

    def worst(self, call: Callable[..., Any], generator: np.random.Generator, count: int) -> float:
        """The worst error seen, in the terms in which the bound is stated."""


@final
@dataclass(frozen=True)
class Assumption:
    """One bound on the error of one primitive.

    Attributes
    ----------
    name : str
        The primitive, and which use of it where there are several.
    path : str
        Where it is found, such as ``numpy.exp``.
    domain : str
        For which arguments it is assumed.
    constant : str
        What states it in the code, in terms of the names of `hockeystick.numerics.rounding`.
    bound : float
        Its value.
    unit : tuple of str and float
        In what it is shown.
    measure : Measure
        How it is measured.
    """

    name: str
    path: str
    domain: str
    constant: str
    bound: float
    unit: tuple[str, float]
    measure: Measure


def primitive(path: str) -> Callable[..., Any]:
    """The function at a dotted path, looked up anew: what the engines would call now."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            module = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        return cast("Callable[..., Any]", functools.reduce(getattr, parts[cut:], cast("Any", module)))
    raise LookupError(path)


# ------------------------------------------------------------------------------------------------------------- points


def _quarter_turns(generator: np.random.Generator, count: int) -> Array:
    """The floats next to multiples of a quarter turn, where a sine or a cosine is smallest."""
    return np.asarray(0.5 * np.pi * np.round(np.exp2(generator.uniform(0.0, 40.0, (1, count)))))


def _powers(generator: np.random.Generator, count: int) -> Array:
    """Bases in (1/2, 1) and whole exponents, with a value in the normal range."""
    base = generator.uniform(0.5, 1.0, count)
    most = np.minimum(-700.0 / np.log(base), 1e9)
    return np.stack((base, np.maximum(np.round(most ** generator.uniform(0.0, 1.0, count)), 1.0)))


_TIES = np.array([[1.0, 1.0, 1.0 + 2.0**-52], [2.0**-53 + 2.0**-64, -(2.0**-54) - 2.0**-65, 2.0**-53]])
_EVERY_SIZE = both_signs(logarithmic(1e-300, 1e300))
_MODEST = both_signs(logarithmic(1e-100, 1e100))


def _sums_of_two(generator: np.random.Generator, count: int) -> Array:
    """Pairs of like size, pairs that are rounded twice where registers are longer, and pairs that meet below TINY."""
    close = paired(both_signs(uniform(0.5, 2.0)), both_signs(logarithmic(2.0**-60, 2.0)))(generator, count)
    return np.concatenate((close, _TIES, close * 2.0**-1030), axis=1)


def _factors(generator: np.random.Generator, count: int) -> Array:
    """Pairs whose product or quotient is of any size, below TINY too; the second near one or a power of two."""
    first = both_signs(logarithmic(2.0**-1060, 1e300))(generator, count)
    return np.concatenate((first, both_signs(logarithmic(0.5, 8.0))(generator, count)))


# -------------------------------------------------------------------------------------------------------------- truths


def _log_ndtr(x: Any) -> Any:
    t = x / arb(2).sqrt()
    return ((-t).erfc() / 2).log() if x < 0 else (-(t.erfc() / 2)).log1p()


def _with_floor(truth: Array, _arguments: Array) -> Array:
    return np.asarray(np.abs(truth) + TINY)  # U * TINY: half a unit of the numbers below it


def _at_most_one(_truth: Array, arguments: Array) -> Array:
    return np.asarray(np.minimum(np.abs(arguments[0]), 1.0))


def _two_and_a_quarter(truth: Array, _arguments: Array) -> Array:
    return np.asarray(2.0 + 0.25 * np.abs(truth))


def _one(_truth: Array, arguments: Array) -> Array:
    return np.ones(arguments.shape[1])


# --------------------------------------------------------------------------------------------------------------- table

_RELATIVE = ("u", U)


# Among the points of log, log1p and erf are the intervals in which some version was found to err most: where a value is
# just above a power of two.


def _functions() -> list[Assumption]:
    """exp and its relatives, of arrays (numpy) and of single numbers (the C library, through math)."""
    both = (
        ("exp", "-708 to 709", lambda x: x.exp(), mixed(uniform(-708.0, 709.0), both_signs(logarithmic(1e-300, 1.0)))),
        (
            "expm1",
            "up to 709",
            lambda x: x.expm1(),
            mixed(uniform(-40.0, 709.0), uniform(-1.0, 1.0), both_signs(logarithmic(1e-300, 1.0))),
        ),
        (
            "log",
            "normal numbers",
            lambda x: x.log(),
            mixed(logarithmic(TINY, 1.7e308), near(1.0, 2.0**-50), uniform(1.0156, 1.018)),
        ),
        (
            "log1p",
            "above -1, up to 1e308",
            lambda x: x.log1p(),
            mixed(logarithmic(1e-300, 1e308), uniform(-0.999, 1.0), uniform(0.0156, 0.018)),
        ),
        ("sqrt", "normal numbers", lambda x: x.sqrt(), logarithmic(TINY, 1.7e308)),
    )
    rows = []
    for name, domain, truth, points in both:
        for module in ("numpy", "math"):
            path = f"{module}.{name}"
            measure = Function(truth, points, single=module == "math")
            rows.append(Assumption(path, path, domain, "ELEMENTARY", ELEMENTARY, _RELATIVE, measure))
    for module in ("numpy", "math"):
        low = Function(lambda x: x.exp(), uniform(-745.0, -708.4), _one, single=module == "math")
        unit = ("x 2^-1074", 2.0**-1074)
        rows.append(
            Assumption(f"{module}.exp, tiny values", f"{module}.exp", "-745 to -708", "SUBNORMAL", SUBNORMAL, unit, low)
        )
    return rows


def _special() -> list[Assumption]:
    def row(path: str, domain: str, constant: str, bound: float, measure: Function, name: str = "") -> Assumption:
        return Assumption(name or path, path, domain, constant, bound, _RELATIVE, measure)

    turns = mixed(both_signs(logarithmic(1e-300, 1e15)), uniform(-10.0, 10.0), _quarter_turns)
    steep = mixed(uniform(-40.0, 15.0), uniform(-5.0, 5.0))
    pairs = mixed(paired(_MODEST, _MODEST), paired(uniform(-2.0, 2.0), uniform(-2.0, 2.0)))
    logs = mixed(paired(uniform(-745.0, 0.0), uniform(-745.0, 0.0)), paired(uniform(-9.0, 3.0), uniform(-9.0, 3.0)))
    plane = mixed(complex_numbers(_MODEST), complex_numbers(uniform(-2.0, 2.0)))
    erf_points = mixed(both_signs(logarithmic(1e-300, 1.0)), uniform(-6.0, 6.0), uniform(0.7, 0.95))
    sine = Function(lambda x: x.sin(), turns, _at_most_one)
    erfcx = Function(lambda x: x.erfc() * (x * x).exp(), mixed(uniform(0.0, 30.0), logarithmic(1e-300, 1e20)))
    log_sum = Function(lambda x, y: (x.exp() + y.exp()).log(), logs, _two_and_a_quarter)
    return [
        row("numpy.sin", "up to 1e15", "TRIGONOMETRIC", TRIGONOMETRIC, sine),
        row("numpy.cos", "up to 1e15", "TRIGONOMETRIC", TRIGONOMETRIC, Function(lambda x: x.cos(), turns, _one)),
        row(
            "numpy.exp",
            "imaginary, up to 1e15",
            "sqrt(2) TRIGONOMETRIC",
            2.0**0.5 * TRIGONOMETRIC,
            Function(lambda z: z.exp(), lambda generator, count: 1j * turns(generator, count), _one),
            "numpy.exp, phases",
        ),
        row("numpy.arctan", "all", "ELEMENTARY", ELEMENTARY, Function(lambda x: x.atan(), _EVERY_SIZE)),
        row("numpy.arctan2", "all", "TRIGONOMETRIC", TRIGONOMETRIC, Function(arb.atan2, pairs)),
        row(
            "numpy.power",
            "1/2 to 1, whole exponents",
            "ELEMENTARY",
            ELEMENTARY,
            Function(lambda x, y: x ** int(float(y)), _powers),
        ),
        row("numpy.logaddexp", "all", "ELEMENTARY (2 + size / 4)", ELEMENTARY, log_sum),
        row("numpy.absolute", "complex", "ELEMENTARY", ELEMENTARY, Function(abs, plane)),
        row("numpy.multiply", "complex", "POWER_STEP", POWER_STEP, Function(lambda z, w: z * w, paired(plane, plane))),
        row("numpy.reciprocal", "complex", "2 ELEMENTARY", 2.0 * ELEMENTARY, Function(lambda z: 1 / z, plane)),
        row("scipy.special.erf", "all", "ERF", ERF, Function(lambda x: x.erf(), erf_points)),
        row("scipy.special.erfcx", "at least 0", "ERFCX", ERFCX, erfcx),
        row("scipy.special.log_ndtr", "up to 15", "LOG_NDTR", LOG_NDTR, Function(_log_ndtr, steep)),
    ]


def _arithmetic() -> list[Assumption]:
    """Rounding to nearest, once, with gradual underflow: of Python's floats and in numpy's loops."""
    operations: tuple[tuple[str, str, Callable[[Any, Any], Any], Points], ...] = (
        ("+", "operator.add", lambda x, y: x + y, _sums_of_two),
        ("-", "operator.sub", lambda x, y: x - y, _sums_of_two),
        ("x", "operator.mul", lambda x, y: x * y, _factors),
        ("/", "operator.truediv", lambda x, y: x / y, _factors),
    )
    return [
        Assumption(f"{kind} {sign}", path, "subnormal numbers too", "U", U, _RELATIVE, measure)
        for sign, path, truth, points in operations
        for kind, measure in (
            ("float", Function(truth, points, _with_floor, single=True)),
            ("array", Function(truth, points, _with_floor)),
        )
    ]


def _sums() -> list[Assumption]:
    any_order = ("x gamma(n - 1)", 1.0)
    of_products = ("x gamma(n)", 1.0)

    def row(
        path: str, constant: str, unit: tuple[str, float], measure: Measure, name: str = "", bound: float = 1.0
    ) -> Assumption:
        return Assumption(name or path, path, "any order of additions", constant, bound, unit, measure)

    def additions(ways: Ways) -> Sum:
        return Sum(ways, lambda n: n - 1)

    return [
        row("numpy.sum", "gamma(n - 1)", any_order, additions(whole)),
        row("numpy.add.reduceat", "gamma(n - 1)", any_order, additions(pieces)),
        row("numpy.cumsum", "gamma(n - 1)", any_order, additions(running)),
        row("numpy.bincount", "gamma(n)", of_products, Sum(binned, lambda n: n)),
        row("numpy.dot", "gamma(n)", of_products, Sum(dots, lambda n: n, factors=True)),
        row("numpy.matmul", "gamma(n)", of_products, Sum(products, lambda n: n, factors=True)),
        row(
            "numpy.vdot",
            "sqrt(2) gamma(2 n)",
            ("x gamma(2 n)", 1.0),
            Sum(plain, lambda n: 2 * n, factors=True, is_complex=True),
            "numpy.vdot, complex",
            2.0**0.5,
        ),
        row(
            "numpy.matmul",
            "sqrt(2) gamma(2 n)",
            ("x gamma(2 n)", 1.0),
            Sum(conjugated_products, lambda n: 2 * n, factors=True, is_complex=True),
            "numpy.matmul, complex",
            2.0**0.5,
        ),
        row("math.fsum", "U", ("u", 1.0), Sum(one_list, lambda _: 1, exact=True)),
        row(
            "numpy.logaddexp.reduce",
            "(n - 1) (2 ELEMENTARY + u size)",
            ("x (n - 1) (8 u + u size)", 1.0),
            LogSum(2.0 * ELEMENTARY, U),
        ),
    ]


def _transforms() -> list[Assumption]:
    domain, level = "lengths 2^a 3^b 5^c", ("u a level", U)
    fft = "hockeystick.numerics.fft"
    return [
        Assumption("scipy.fft.rfft", f"{fft}.transform_real", domain, "FFT_LEVEL", FFT_LEVEL, level, Transform()),
        Assumption("scipy.fft.irfft", f"{fft}.inverse_real", domain, "FFT_LEVEL", FFT_LEVEL, level, Inverse()),
        Assumption(
            "integer powers",
            f"{fft}.integer_power",
            "complex, exponents from 1",
            "POWER_STEP",
            POWER_STEP,
            ("u a product", U),
            Power(),
        ),
    ]


ASSUMPTIONS: tuple[Assumption, ...] = (*_arithmetic(), *_functions(), *_special(), *_sums(), *_transforms())
"""Every assumption, in the order in which it is shown."""
