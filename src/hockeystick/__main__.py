"""``python -m hockeystick``: the command line."""

import sys

from hockeystick.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
