"""The command ``kinfolk``, the same program as the one that cargo builds."""

import signal
import sys

from . import _kinfolk


def main() -> int:
    # Python's own handler would run only after the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _kinfolk.run(["kinfolk", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
