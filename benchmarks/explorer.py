"""``python -m benchmarks.explorer``: from a slider's move to the certified curve redrawn, many moves in a row.

The page itself notes when a control moved and when the curve of the last move was drawn. The next move follows at once.
"""

from __future__ import annotations

import argparse
import statistics

from benchmarks.browser import CHROMIUM, DRIVER, chromium, explorer, settled

_SLIDERS = {
    "noise_multiplier": "",
    "rate": "",
    "steps": "",
    "delta": "",
    "batch_size": "?given=batch",
    "epochs": "?duration=epochs",
    "target_epsilon": "?lock=true",
}
"""The page at which each slider is seen; the last has the noise found while it moves."""

_MOVES = """
const [slider, count, done] = arguments, control = $(slider);
let made = 0;
function move() {
  control.value = 450 + Math.round(120 * Math.sin(made++ / 3));
  control.dispatchEvent(new Event('input'));
}
new PerformanceObserver((seen) => {
  const times = performance.getEntriesByName('redraw').map((entry) => entry.duration);
  if (times.length >= count) done(times.slice(0, count)); else setTimeout(move, 0);
}).observe({ type: 'measure' });
performance.clearMeasures();
move();
"""


def main() -> None:
    """Print the quantiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=200)
    parser.add_argument("--sliders", nargs="+", choices=_SLIDERS, default=list(_SLIDERS))
    options = parser.parse_args()
    if CHROMIUM is None or DRIVER is None:
        parser.error("no browser: apt-get install chromium chromium-driver")
    with explorer() as address, chromium() as driver:
        driver.set_script_timeout(600)
        for name in options.sliders:
            driver.get(address + _SLIDERS[name])
            settled(driver)
            times = driver.execute_async_script(_MOVES, f"{name}-slider", options.moves)
            middle, late = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            print(f"{name}: median {middle:.0f} ms, 95th percentile {late:.0f} ms, {len(times)} moves")


if __name__ == "__main__":
    main()
