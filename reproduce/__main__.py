"""``python -m reproduce``: redraw the figures and tables, check their claims, say what failed.

Each item runs in a process of its own, within its time budget. The status is 0 when every check of every item holds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from pathlib import Path

from reproduce.gallery import write_gallery
from reproduce.items import Item, Size, modules
from reproduce.single import make

OUT = Path("out/reproduce")


def main() -> int:
    """Run what the command line names."""
    options = _options()
    found = modules()
    names = [name for name in found if not options.only or any(name.startswith(only) for only in options.only)]
    if options.list:
        for name in names:
            print(f"{name:16} {found[name].ITEM.title}")
        return 0
    if not names:
        print(
            f"nothing is called {', '.join(options.only)}; `python -m reproduce --list` shows the names",
            file=sys.stderr,
        )
        return 2
    start = time.monotonic()
    failed = [name for name in names if not _run(found[name].ITEM, options.size, options.out)]
    print(
        f"{len(names) - len(failed)} of {len(names)} hold, {time.monotonic() - start:.0f} s; results in {options.out}/"
    )
    if options.gallery:
        write_gallery(found, options.out)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reproduce", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="names, or how they begin: 000, 000-fig6")
    parser.add_argument("--size", choices=("full", "reduced"), default="full", help="reduced takes seconds an item")
    parser.add_argument("--out", type=Path, default=OUT, help=f"where results go (default {OUT})")
    parser.add_argument("--list", action="store_true", help="show the names and do nothing")
    parser.add_argument("--gallery", action="store_true", help="write docs/gallery.md from the results")
    return parser.parse_args()


def _run(item: Item, size: Size, out: Path) -> bool:
    """Make one item in a process of its own; whether it ended in time with every check holding."""
    print(f"{item.name:16} {item.title} ...", flush=True)
    start = time.monotonic()
    process = multiprocessing.get_context("spawn").Process(target=make, args=(item.name, size, out))
    process.start()
    process.join(item.minutes * 60.0)
    if process.is_alive():
        process.terminate()
        process.join()
        print(f"{'':16} stopped after its {item.minutes:g} minutes", flush=True)
        return False
    print(f"{'':16} {'holds' if process.exitcode == 0 else 'FAILED'}, {time.monotonic() - start:.1f} s", flush=True)
    return process.exitcode == 0


if __name__ == "__main__":
    sys.exit(main())
