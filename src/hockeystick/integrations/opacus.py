"""Opacus: an accountant whose epsilon is certified, and a privacy engine that calibrates by it.

Importing this module registers the accountant, so that ``PrivacyEngine(accountant="hockeystick")`` finds it. The
relation is Opacus's own: one example added or removed. A step is Gaussian noise on a Poisson sample; where several
batches, each drawn for itself, are accumulated before noise is added, a record may be in more than one of them: that is
a binomial mixture of shifts (`GaussianMixture.poisson_group`), not a Poisson sample of the added rates. A rate is taken
as Opacus's sampler draws by it: a record is in a batch where a random number of 24 bits (torch's own type's) is below.

Guarantee: `HockeystickAccountant.get_epsilon` is at least the certified upper side of the stated steps.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, cast, final

import opacus
from opacus.accountants import IAccountant, register_accountant
from opacus.optimizers import AdaClipDPOptimizer, DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler, UniformWithReplacementSampler

from hockeystick.account import account
from hockeystick.bound import Bound
from hockeystick.calibrate import Calibration, UnreachableTargetError, calibrate
from hockeystick.composition import Composition, Step, compose
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import check_count, check_delta, check_positive, check_rate
from hockeystick.mechanisms import ApproximateDP, Gaussian, GaussianMixture

_NAME = "hockeystick"
_POISSON = (UniformWithReplacementSampler, DistributedUniformWithReplacementSampler)
_ALMOST = 1e-9  # relative: a number of steps computed in float64 that is this near to an integer is that integer


@final
class HockeystickAccountant(IAccountant):
    """The accountant of Opacus's interface.

    Attributes
    ----------
    history : list of tuple
        ``(noise_multiplier, sample_rate, steps)`` as Opacus keeps it, with a fourth number where several batches were
        accumulated for one step: how many.

    Examples
    --------
    >>> accountant = HockeystickAccountant()
    >>> accountant.history = [(1.0, 0.01, 2000)]
    >>> f"{accountant.get_epsilon(delta=1e-5):.4f}"
    '2.5838'
    >>> f"{accountant.curve.epsilon(delta=1e-5):.3f}"
    '[2.583, 2.584]'
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: list[tuple[Any, ...]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        self._record(noise_multiplier, sample_rate, 1)

    def _record(self, noise_multiplier: float, sample_rate: float, batches: int) -> None:
        _step(noise_multiplier, sample_rate, batches)  # refuses what is no step, before it is recorded
        kind = (float(noise_multiplier), float(sample_rate))
        last = self.history[-1] if self.history else None
        if last is not None and tuple(last[:2]) == kind and _batches(last) == batches:
            self.history[-1] = (*kind, last[2] + 1, *last[3:])
        else:
            self.history.append((*kind, 1) if batches == 1 else (*kind, 1, batches))

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[DPOptimizer], None]:
        """What the optimizer calls in each step, before the model moves; refuses loaders that draw no Poisson samples.

        Raises
        ------
        ValueError
            Where the privacy engine's data loader does not sample (``poisson_sampling=False``), samples at a higher
            rate, or fills empty batches. The hook raises it, too: in the first step of an optimizer that adapts its
            clipping norm, or whose noise is for a smaller norm than the one that gradients are clipped to.
        """
        made = _made_by(inspect.currentframe())
        if made:
            _refuse_other_batches(made["data_loader"], sample_rate)

        def hook(optimizer: DPOptimizer) -> None:
            _refuse_adaptive_clipping(optimizer)
            _refuse_less_noise(optimizer, made.get("module"))
            self._record(optimizer.noise_multiplier, sample_rate, optimizer.accumulated_iterations)

        return hook

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """The certified upper side of epsilon so far (nats); other arguments are those of other accountants."""
        return float(self.bound(delta))

    def bound(self, delta: float) -> Bound:
        """The certified bracket of epsilon so far (nats)."""
        if not self.history:
            check_delta(delta)
            return Bound(0.0, 0.0, _NAME, notes=("no steps yet",))
        return cast("Bound", self.curve.epsilon(delta))  # the default accountant certifies

    @property
    def composition(self) -> Composition:
        """The steps so far, to ask anything else of them; ``ValueError`` before the first."""
        return _composition(self.history)

    @property
    def curve(self) -> PrivacyCurve:
        """The privacy curve of the steps so far, under the addition or removal of one example."""
        return account(self.composition)

    def __len__(self) -> int:
        return sum(int(entry[2]) for entry in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name it is registered by."""
        return _NAME

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        before = self.history
        super().load_state_dict(state_dict)
        try:
            self.history = [tuple(entry) for entry in self.history]
            if self.history:
                _composition(self.history)
        except (TypeError, ValueError, IndexError) as error:
            self.history = before
            raise ValueError(f"state_dict has a `history` that is not this accountant's: {error}") from error


class PrivacyEngine(opacus.PrivacyEngine):
    """Opacus's engine with this accountant, whose targets are met as closely as is proved.

    ``make_private_with_epsilon`` takes the noise of `noise_multiplier_for` in place of a search that stops within 0.01
    of the target, and counts what the accountant has already spent. All else is as in Opacus.
    """

    def __init__(self, *, accountant: str = _NAME, **kwargs: Any) -> None:
        super().__init__(accountant=accountant, **kwargs)

    def make_private_with_epsilon(
        self, *, data_loader: Any, target_epsilon: float, target_delta: float, epochs: int, **kwargs: Any
    ) -> Any:
        target: Any = {"target_epsilon": target_epsilon, "target_delta": target_delta, "epochs": epochs}
        if not isinstance(self.accountant, HockeystickAccountant):
            return super().make_private_with_epsilon(data_loader=data_loader, **target, **kwargs)
        spent = self.accountant.composition if self.accountant.history else None
        batches = int(1 / (1 / len(data_loader)))  # as its sampler counts them: of 93 float64 leaves 92
        found = noise_multiplier_for(**target, sample_rate=1 / batches, spent=spent)
        return self.make_private(data_loader=data_loader, noise_multiplier=found.value, **kwargs)


def noise_multiplier_for(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epochs: float | None = None,
    steps: int | None = None,
    spent: Composition | None = None,
) -> Calibration:
    """The smallest noise multiplier proved to end at the target: in place of Opacus's ``get_noise_multiplier``.

    Parameters
    ----------
    target_epsilon, target_delta : float
        The budget at the end (nats).
    sample_rate : float
        In (0, 1].
    epochs, steps : one of the two
        How long the run is; steps that epochs do not make whole are rounded up.
    spent : Composition, optional
        What was released before, and counts too.

    Raises
    ------
    ValueError
        Where no noise meets the target.

    Examples
    --------
    >>> found = noise_multiplier_for(target_epsilon=1.0, target_delta=1e-6, sample_rate=0.001, steps=10_000)
    >>> f"{found.value:.4f}"
    '0.7876'
    """
    if (steps is None) == (epochs is None):
        raise ValueError("noise_multiplier_for takes as input EITHER a number of steps or a number of epochs")
    rate = check_rate("sample_rate", sample_rate)
    count = _whole(check_positive("epochs", epochs) / rate) if steps is None else check_count("steps", steps)

    def family(noise: float) -> Composition:
        run = _step(noise, rate, 1) * count
        return run if spent is None else spent + run

    try:
        return calibrate(family, epsilon=target_epsilon, delta=target_delta, safe="larger")
    except UnreachableTargetError as error:
        raise ValueError(f"The privacy budget is too low: {error}") from error


def _whole(steps: float) -> int:
    """Steps as a whole number, rounded up: a float64 quotient next to an integer is that integer."""
    nearest = round(steps)
    return nearest if abs(steps - nearest) <= _ALMOST * nearest else math.ceil(steps)


def _composition(history: list[tuple[Any, ...]]) -> Composition:
    return compose([(_step(entry[0], entry[1], _batches(entry)), check_count("steps", entry[2])) for entry in history])


def _batches(entry: tuple[Any, ...]) -> int:
    return check_count("batches", entry[3]) if len(entry) > 3 else 1


def _step(noise_multiplier: float, sample_rate: float, batches: int) -> Step:
    rate = _drawn(check_rate("sample_rate", sample_rate))
    if noise_multiplier == 0.0:
        return ApproximateDP(0.0, 1.0)  # no noise, no privacy
    if batches > 1:
        return GaussianMixture.poisson_group(noise_multiplier, rate=rate, size=batches)
    return Gaussian(noise_multiplier).poisson(rate)


def _drawn(rate: float) -> float:
    """The probability that a random number of torch is below a rate, both of torch's own type; no less than the rate.

    These numbers are multiples of half the type's epsilon, 2^-24 for float32.
    """
    import torch

    unit = 0.5 * float(torch.finfo(torch.get_default_dtype()).eps)
    return max(rate, math.ceil(float(torch.tensor(rate)) / unit) * unit)


def _made_by(frame: FrameType | None) -> Mapping[str, Any]:
    """What `PrivacyEngine.make_private` hands out, where it is what asks for a hook; nothing of other callers.

    The framework tells its accountant neither how batches are drawn nor what clips: that is known in the calling frame
    alone.
    """
    caller = frame.f_back if frame is not None else None
    if caller is None or caller.f_code is not opacus.PrivacyEngine.make_private.__code__:
        return {}
    return {name: caller.f_locals[name] for name in ("data_loader", "module")}


def _refuse_other_batches(loader: Any, sample_rate: float) -> None:
    """Refuse a loader that draws no Poisson samples, or others than of the rate, or that fills empty ones."""
    sampler = getattr(loader, "batch_sampler", None)
    if not isinstance(sampler, _POISSON):
        raise ValueError(
            "this data loader does not draw Poisson samples (poisson_sampling=False): shuffled or fixed-size batches"
            " are another mechanism, with less privacy at small noise. Use poisson_sampling=True, or account"
            " hockeystick.Gaussian(...).shuffled(...) by hockeystick.account"
        )
    if sampler.sample_rate > sample_rate:
        raise ValueError(
            f"this data loader samples at the rate {sampler.sample_rate!r}, but Opacus tells its accountants"
            f" {sample_rate!r}, one over its number of batches. Use poisson_sampling=True, which samples at that rate"
        )
    if getattr(loader.collate_fn, "rand_on_empty", False):
        raise ValueError(
            "rand_on_empty=True is not proved: of two neighbours one has a made-up record where the other has its own,"
            " so that a step moves by up to twice max_grad_norm. Use rand_on_empty=False"
        )


def _refuse_less_noise(optimizer: DPOptimizer, module: Any) -> None:
    """Refuse noise for a smaller norm than the one that gradients are clipped to.

    A schedule of clipping norms sets the norm of the optimizer, which its noise is for. What clips has one of its own
    where the module clips, or each layer.
    """
    import torch

    norm = None
    if isinstance(optimizer, DPOptimizerFastGradientClipping):
        norm = getattr(module, "max_grad_norm", None)
    elif hasattr(optimizer, "max_grad_norms"):
        norm = torch.norm(torch.Tensor(optimizer.max_grad_norms)).item()
    if norm is not None and optimizer.max_grad_norm < norm:
        raise ValueError(
            f"the noise is for max_grad_norm {optimizer.max_grad_norm!r}, but gradients are clipped to {norm!r}: a"
            " schedule of max_grad_norm does not reach ghost clipping, nor the layers of per-layer clipping. Use a"
            ' fixed max_grad_norm, or clipping="flat" with grad_sample_mode="hooks"'
        )


def _refuse_adaptive_clipping(optimizer: DPOptimizer) -> None:
    """Refuse clipping norms that follow the data.

    Each step then releases, beside the sum, the noisy number of records below the norm over the number of records in
    the batch. For that count Opacus takes half of what a record moves it by, and for the size of the batch nothing.
    """
    if isinstance(optimizer, AdaClipDPOptimizer) or hasattr(optimizer, "_adjusted_noise_multiplier"):
        raise ValueError(
            "adaptive clipping is not proved: its clipping norm follows the share of records below it, whose cost"
            " Opacus counts as if the size of a batch were public, which it is not for Poisson samples. Use a fixed"
            ' max_grad_norm, with clipping="flat" or "per_layer"'
        )


register_accountant(_NAME, HockeystickAccountant, force=True)
