"""Plain tables: aligned columns, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Aligned columns under a line of heads.

    Parameters
    ----------
    heads : sequence of str
        One for each column.
    rows : sequence of sequence of str
        The cells.
    right : sequence of int
        The columns that are aligned to the right.

    Examples
    --------
    >>> print(table(["name", "n"], [["a", "10"], ["bc", "5"]], right=[1]))
    name   n
    a     10
    bc     5
    """
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    lines = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]
    return "\n".join(lines)
