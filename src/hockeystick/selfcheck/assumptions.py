"""What every proof assumes of numpy, scipy and the C library: one row an assumption, with how it is measured.

`docs/concepts/assumptions.md` says the same in words; a test compares the two. The constants are those of
`hockeystick.numerics.rounding`, which the proofs use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast, final

import numpy as np
from flint import arb

from hockeystick.numerics import rounding
from hockeystick.numerics.rounding import ELEMENTARY, TINY, TRIGONOMETRIC, U
from hockeystick.selfcheck import sums
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

Measure = Callable[[Callable[..., Any], np.random.Generator, int], float]
"""A way to measure a function, on about so many points: the worst error, in the terms in which the bound is stated."""


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


def _above_minus_one(generator: np.random.Generator, count: int) -> Array:
    """Numbers at distances of every size above -1."""
    return np.asarray(logarithmic(2.0**-52, 0.5)(generator, count) - 1.0)


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


def _row(
    path: str,
    domain: str,
    constant: str,
    measure: Measure,
    *,
    bound: float | None = None,
    unit: tuple[str, float] = _RELATIVE,
    name: str = "",
) -> Assumption:
    """An assumption: its bound is what the constant names, unless it is given."""
    value = getattr(rounding, constant) if bound is None else bound
    return Assumption(name or path, path, domain, constant, value, unit, measure)


# Among the points of log, log1p and erf are the intervals in which some version was found to err most: where a value is
# just above a power of two.


def _functions() -> list[Assumption]:
    """exp and its relatives, of arrays (numpy) and of single numbers (the C library, through math)."""
    small, normal = both_signs(logarithmic(1e-300, 1.0)), logarithmic(TINY, 1.7e308)
    above = mixed(logarithmic(1e-300, 1e308), uniform(-0.999, 1.0), uniform(0.0156, 0.018), _above_minus_one)
    both: tuple[tuple[str, str, Callable[[Any], Any], Points], ...] = (
        ("exp", "-708 to 709", lambda x: x.exp(), mixed(uniform(-708.0, 709.0), small)),
        ("expm1", "up to 709", lambda x: x.expm1(), mixed(uniform(-40.0, 709.0), uniform(-1.0, 1.0), small)),
        ("log", "normal numbers", lambda x: x.log(), mixed(normal, near(1.0, 2.0**-50), uniform(1.0156, 1.018))),
        ("log1p", "above -1, up to 1e308", lambda x: x.log1p(), above),
        ("sqrt", "normal numbers", lambda x: x.sqrt(), normal),
    )
    rooms = {"numpy": False, "math": True}  # with whether it takes single numbers
    rows = [
        _row(f"{room}.{name}", domain, "ELEMENTARY", Function(truth, points, single=single))
        for name, domain, truth, points in both
        for room, single in rooms.items()
    ]
    for room, single in rooms.items():
        low = Function(lambda x: x.exp(), uniform(-745.0, -708.4), _one, single=single)
        path, unit = f"{room}.exp", ("x 2^-1074", 2.0**-1074)
        rows.append(_row(path, "-745 to -708", "SUBNORMAL", low, unit=unit, name=f"{path}, tiny values"))
    return rows


def _special() -> list[Assumption]:
    turns = mixed(both_signs(logarithmic(1e-300, 1e15)), uniform(-10.0, 10.0), _quarter_turns)
    steep = mixed(uniform(-40.0, 15.0), uniform(-5.0, 5.0))
    pairs = mixed(paired(_MODEST, _MODEST), paired(uniform(-2.0, 2.0), uniform(-2.0, 2.0)))
    logs = mixed(paired(uniform(-745.0, 0.0), uniform(-745.0, 0.0)), paired(uniform(-9.0, 3.0), uniform(-9.0, 3.0)))
    plane = mixed(complex_numbers(_MODEST), complex_numbers(uniform(-2.0, 2.0)))
    erf_points = mixed(both_signs(logarithmic(1e-300, 1.0)), uniform(-6.0, 6.0), uniform(0.7, 0.95))
    phases = Function(lambda z: z.exp(), lambda generator, count: 1j * turns(generator, count), _one)
    erfcx = Function(lambda x: x.erfc() * (x * x).exp(), mixed(uniform(0.0, 30.0), logarithmic(1e-300, 1e20)))
    log_sum = Function(lambda x, y: (x.exp() + y.exp()).log(), logs, _two_and_a_quarter)
    powers = Function(lambda x, y: x ** int(float(y)), _powers)
    of_phases: dict[str, Any] = {"bound": 2.0**0.5 * TRIGONOMETRIC, "name": "numpy.exp, phases"}
    return [
        _row("numpy.sin", "up to 1e15", "TRIGONOMETRIC", Function(lambda x: x.sin(), turns, _at_most_one)),
        _row("numpy.cos", "up to 1e15", "TRIGONOMETRIC", Function(lambda x: x.cos(), turns, _one)),
        _row("numpy.exp", "imaginary, up to 1e15", "sqrt(2) TRIGONOMETRIC", phases, **of_phases),
        _row("numpy.arctan", "all", "ELEMENTARY", Function(lambda x: x.atan(), _EVERY_SIZE)),
        _row("numpy.arctan2", "all", "TRIGONOMETRIC", Function(arb.atan2, pairs)),
        _row("numpy.power", "1/2 to 1, whole exponents", "ELEMENTARY", powers),
        _row("numpy.logaddexp", "all", "ELEMENTARY (2 + size / 4)", log_sum, bound=ELEMENTARY),
        _row("numpy.absolute", "complex", "ELEMENTARY", Function(abs, plane)),
        _row("numpy.multiply", "complex", "POWER_STEP", Function(lambda z, w: z * w, paired(plane, plane))),
        _row("numpy.reciprocal", "complex", "2 ELEMENTARY", Function(lambda z: 1 / z, plane), bound=2.0 * ELEMENTARY),
        _row("scipy.special.erf", "all", "ERF", Function(lambda x: x.erf(), erf_points)),
        _row("scipy.special.erfcx", "at least 0", "ERFCX", erfcx),
        _row("scipy.special.log_ndtr", "up to 15", "LOG_NDTR", Function(_log_ndtr, steep)),
    ]


def _arithmetic() -> list[Assumption]:
    """Rounding to nearest, once, with gradual underflow: of Python's floats and in numpy's loops."""
    operations: tuple[tuple[str, str, Callable[[Any, Any], Any], Points], ...] = (
        ("+", "operator.add", lambda x, y: x + y, _sums_of_two),
        ("-", "operator.sub", lambda x, y: x - y, _sums_of_two),
        ("x", "operator.mul", lambda x, y: x * y, _factors),
        ("/", "operator.truediv", lambda x, y: x / y, _factors),
    )
    rows = []
    for sign, path, truth, points in operations:
        for kind, single in (("float", True), ("array", False)):
            measure = Function(truth, points, _with_floor, single=single)
            rows.append(_row(path, "subnormal numbers too", "U", measure, name=f"{kind} {sign}"))
    return rows


def _sums() -> list[Assumption]:
    def row(path: str, constant: str, unit: str, measure: Measure, name: str = "", bound: float = 1.0) -> Assumption:
        return _row(path, "any order of additions", constant, measure, bound=bound, unit=(unit, 1.0), name=name)

    def additions(path: str, ways: sums.Ways) -> Assumption:
        return row(path, "gamma(n - 1)", "x gamma(n - 1)", sums.Sum(ways, lambda n: n - 1))

    def of_products(path: str, ways: sums.Ways) -> Assumption:
        return row(path, "gamma(n)", "x gamma(n)", sums.Sum(ways, lambda n: n, factors=True))

    def of_complex(path: str, ways: sums.Ways) -> Assumption:
        measure = sums.Sum(ways, lambda n: 2 * n, factors=True, is_complex=True)
        return row(path, "sqrt(2) gamma(2 n)", "x gamma(2 n)", measure, f"{path}, complex", 2.0**0.5)

    logs = "(n - 1) (2 ELEMENTARY + u size)", "x (n - 1) (8 u + u size)"
    return [
        additions("numpy.sum", sums.whole),
        additions("numpy.add.reduceat", sums.pieces),
        additions("numpy.cumsum", sums.running),
        row("numpy.bincount", "gamma(n)", "x gamma(n)", sums.Sum(sums.binned, lambda n: n)),
        of_products("numpy.dot", sums.dots),
        of_products("numpy.matmul", sums.products),
        of_complex("numpy.vdot", sums.plain),
        of_complex("numpy.matmul", sums.conjugated_products),
        row("math.fsum", "U", "u", sums.Sum(sums.one_list, lambda _: 1, exact=True)),
        row("numpy.logaddexp.reduce", *logs, sums.log_sum),
    ]


def _transforms() -> list[Assumption]:
    domain, level = "lengths 2^a 3^b 5^c", ("u a level", U)
    fft, product = "hockeystick.numerics.fft", ("u a product", U)
    exponents = "complex, exponents from 1"
    return [
        _row(f"{fft}.transform_real", domain, "FFT_LEVEL", sums.transform, unit=level, name="scipy.fft.rfft"),
        _row(f"{fft}.inverse_real", domain, "FFT_LEVEL", sums.inverse, unit=level, name="scipy.fft.irfft"),
        _row(f"{fft}.integer_power", exponents, "POWER_STEP", sums.power, unit=product, name="integer powers"),
    ]


ASSUMPTIONS: tuple[Assumption, ...] = (*_arithmetic(), *_functions(), *_special(), *_sums(), *_transforms())
"""Every assumption, in the order in which it is shown."""
