"""A page in your browser: move a slider and see the certified curve move.

Serve a page, on this machine's own address only, whose sliders move certified curves. It needs no network. Stop it with
Ctrl-C.

  hockeystick explore
  hockeystick explore --port 0 --no-browser
"""

from __future__ import annotations

import argparse
import webbrowser
from functools import partial

from hockeystick.app.cli.parsing import CommandError, Parser, Status, count, option

_PORT, _MOST_PORTS = 8321, 65535


def add(parser: Parser) -> None:
    """Add the command's options."""
    option(parser, "--port", partial(count, minimum=0), "N", "0 for any (default: %(default)s)", default=_PORT)
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open nothing")


def run(options: argparse.Namespace) -> Status:
    """Serve until interrupted."""
    from hockeystick.app.explore.server import serve  # asks for more of the library than other commands need

    def opened(address: str) -> None:
        print(f"hockeystick explore: {address} (Ctrl-C stops it)", flush=True)
        if not options.no_browser:
            webbrowser.open(address)

    if options.port > _MOST_PORTS:
        raise CommandError(f"hockeystick explore: error: --port must be at most {_MOST_PORTS}, got {options.port}")
    try:
        serve(options.port, opened=opened)
    except ModuleNotFoundError as error:
        raise CommandError(
            f"hockeystick explore: error: this needs {error.name}, which is not installed: pip install"
            " 'hockeystick[explore]', or '.[explore]' in a checkout"
        ) from None
    except OSError as error:
        raise CommandError(
            f"hockeystick explore: error: cannot listen on port {options.port}: {error.strerror}; try --port 0"
        ) from None
    return Status.OK
