"""Sweeps: certified answers, or calibrated values, for every plan of a grid.

Guarantee: each bracket is the one that `hockeystick.account` gives for that plan alone, bit for bit, whatever the
workers and the chunks; a calibrated value is proved as by `hockeystick.calibrate`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Literal

import numpy as np

from hockeystick.accountants.base import AUTOMATIC, Accountant, check_accountant
from hockeystick.accountants.certified import Certified
from hockeystick.composition import Composition, Step, directions
from hockeystick.engines.together import Quantity
from hockeystick.errors import check_delta, check_epsilon, check_positive, public_door
from hockeystick.progress import Progress
from hockeystick.sweep.chunks import Chunks
from hockeystick.sweep.files import RowFile, restored, row_file
from hockeystick.sweep.grid import Grid, check_arguments
from hockeystick.sweep.plans import Plan, Row, Search, check_settings, plans_of, rows_of, searches_of
from hockeystick.sweep.result import Sweep
from hockeystick.sweep.workers import Workers, check_workers, done

__all__ = ["Sweep", "sweep"]

INTERRUPTED = "not asked: the sweep was interrupted"
"""Why a plan has no answer where nobody came to ask it."""


@public_door
def sweep(
    family: Callable[..., Step | Composition],
    *,
    delta: Any = None,
    epsilon: Any = None,
    adjacency: Any = "add-remove",
    tolerance: float = 1e-3,
    accountant: Accountant | Literal["automatic"] | None = None,
    find: str | None = None,
    mu: Any = None,
    advantage: Any = None,
    settings: Mapping[str, Any] | None = None,
    workers: Any = 1,
    file: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    **arguments: Any,
) -> Sweep:
    """Certified answers for every plan of a grid: one value, or a list of values for an axis, of each argument.

    Parameters
    ----------
    family : callable
        From named arguments to a step or a composition.
    delta, epsilon : float or list of float
        Where epsilon is wanted, the deltas; where delta is wanted, the epsilons. With ``find``, both: the target.
    adjacency : str or list of str
        The neighbouring relation, as for `hockeystick.account`.
    tolerance, accountant
        As for `hockeystick.account`; with ``find`` how close a value is found is a matter of ``settings``.
    find : str, optional
        The argument of ``family`` to calibrate: for each plan the best value that is proved to meet the target.
    mu, advantage : float or list of float
        Other targets, as for `hockeystick.calibrate`.
    settings : mapping, optional
        With ``find``: more arguments of `hockeystick.calibrate`, such as ``{"precision": 1e-4, "safe": "larger"}``.
    workers : int, executor, client or callable
        How many processes, -1 for one a processor; or who does the work: an executor of `concurrent.futures`, a
        ``dask.distributed.Client``, or a function like ``map``.
    file : path, optional
        Where rows are written as they come: a name that ends in ``.csv`` or ``.parquet`` and is not there yet.
    resume : path, optional
        The same, where the rows that are there already are kept and only the others are computed.
    **arguments
        The arguments of ``family``.

    Returns
    -------
    Sweep
        ``bound`` has the shape of the grid. The axes are the lists, in this order: those of ``family`` as given,
        adjacency, epsilon, delta, mu, advantage. A plan that is refused has a trivial bracket and a reason. After
        Ctrl-C the plans that are done are returned, with a warning; the others are refused.

    Examples
    --------
    >>> import hockeystick as hs
    >>> def plan(noise, rate, steps):
    ...     return hs.Gaussian(noise).poisson(rate) * steps
    >>> found = sweep(plan, noise=[0.7, 1.0], rate=[0.001, 0.01], steps=2000, delta=1e-5)
    >>> found.bound.upper.round(2).tolist()
    [[0.74, 6.21], [0.21, 2.58]]
    >>> least = sweep(plan, find="noise", rate=[0.001, 0.002], steps=2000, epsilon=1.0, delta=1e-6)
    >>> least.safe.round(3).tolist()
    [0.717, 0.817]
    """
    if not callable(family):
        raise TypeError(f"family must be a function from named arguments to a run, got {family!r}")
    check_arguments(family, arguments, find)
    targets = {"epsilon": epsilon, "delta": delta, "mu": mu, "advantage": advantage}
    given = {name: value for name, value in targets.items() if value is not None}
    grid = Grid.of(arguments | {"adjacency": adjacency} | given)
    helpers = check_workers(workers)
    default = Certified(check_positive("tolerance", tolerance))
    if find is None:
        if settings is not None:
            raise TypeError("settings belong to a calibration: say what to find with find=")
        quantity: str = (asked := _quantity(grid, given))
        method = check_accountant(accountant, default)
        runs = plans_of(family, grid, asked, method)
        plans: Sequence[Plan | Search] = runs
        chunks, words = Chunks.of_runs(runs, helpers), repr(method)
    else:
        own = {} if accountant in (None, AUTOMATIC) else {"accountant": check_accountant(accountant, default)}
        chosen = check_settings(settings or {}) | own
        quantity, words = find, repr(sorted(chosen.items()))
        searches = searches_of(family, grid, find, chosen)
        plans, chunks = searches, Chunks.of_searches(searches, helpers)
    kept = _kept(file, resume, Grid(grid.axes, {**grid.fixed, "settings": words}), quantity)
    return Sweep(grid=grid, quantity=quantity, rows=tuple(_rows(plans, chunks, kept, helpers)))


def _quantity(grid: Grid, given: Mapping[str, Any]) -> Quantity:
    """What is asked for, where all that is given is fit to ask it at."""
    if set(given) not in ({"delta"}, {"epsilon"}):
        raise TypeError(
            "give either delta, where epsilon is wanted, or epsilon, where delta is wanted; a target belongs to a"
            f" calibration (find=); got {', '.join(given) or 'none'}"
        )
    check = check_delta if "delta" in given else check_epsilon
    for name in given:
        for value in grid.values(name):
            if np.ndim(check(value)):
                raise TypeError(f"{name} must be one number or a list of numbers, got {value!r} among them")
    for relation in grid.values("adjacency"):
        directions(relation)
    return "epsilon" if "delta" in given else "delta"


def _kept(
    file: str | os.PathLike[str] | None, resume: str | os.PathLike[str] | None, grid: Grid, quantity: str
) -> RowFile | None:
    """Where rows are kept."""
    if file is not None and resume is not None:
        raise TypeError("give either file, for a new one, or resume, to go on with one")
    path = resume if file is None else file
    if path is None:
        return None
    found = row_file(path, grid, quantity)
    if file is not None and found.path.exists():
        raise FileExistsError(f"{found.path} is there already: resume= goes on with it")
    if found.path.exists() and found.path.is_dir() != found.folder:
        raise ValueError(f"{found.path} must be a {'folder' if found.folder else 'file'}, and is none")
    if not found.path.parent.is_dir():  # known before anything is computed
        raise FileNotFoundError(f"{found.path} cannot be written: there is no folder {found.path.parent}")
    return found


def _rows(plans: Sequence[Plan | Search], chunks: Chunks, kept: RowFile | None, workers: Workers) -> list[Row]:
    """The rows of all plans; those not asked for are refused."""
    rows = {} if kept is None else restored(kept, plans)
    taken: list[list[int]] = []

    def work() -> Iterator[list[Plan | Search]]:
        for numbers in chunks.missing(set(rows)):
            taken.append(numbers)
            yield [plans[number] for number in numbers]

    with Progress(f"{len(plans)} plans") as progress, closing(done(rows_of, work(), workers)) as results:
        try:
            for chunk, found in results:
                new = [(i, row) for i, row in zip(taken[chunk], found, strict=True) if i not in rows]
                rows.update(new)
                if kept is not None:
                    kept.write(new)
                progress.count(len(rows), len(plans))
        except KeyboardInterrupt:
            warnings.warn(f"interrupted: {len(rows)} of {len(plans)} plans are done", RuntimeWarning, stacklevel=4)
    return [rows.get(number) or plan.trivial(INTERRUPTED) for number, plan in enumerate(plans)]
