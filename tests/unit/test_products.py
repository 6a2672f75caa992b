"""Matrix products that start no threads: none is larger than it may be, and all together are the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hockeystick.numerics import products


@pytest.mark.parametrize("shape", [(1, 1, 1), (63, 24, 63), (100, 63, 63), (7, 300, 400), (3, 0, 5)])
def test_a_product_is_made_of_small_ones(shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rows, inner, columns = shape
    draw = np.random.default_rng(1).integers(-8, 8, (2, rows * inner + inner * columns))
    every = draw[0] + 1j * draw[1]
    left, right = every[: rows * inner].reshape(rows, inner), every[rows * inner :].reshape(inner, columns)
    made: list[int] = []

    def matmul(a: Any, b: Any, **kept: Any) -> Any:
        made.append(a.shape[0] * b.size)
        return np.matmul(a, b, **kept)

    whole = left @ right
    monkeypatch.setattr(products, "np", type("numpy", (), {**vars(np), "matmul": staticmethod(matmul)}))
    assert (products.product(left, right) == whole).all()  # of whole numbers, exactly
    assert all(size <= max(products.SMALL, right.size) for size in made)
