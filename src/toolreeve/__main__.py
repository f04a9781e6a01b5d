"""Entry point of `python -P -m toolreeve`, the command line.

Without `-P`, Python searches the current directory first, and a package `toolreeve` found there runs instead.
"""

import sys

from toolreeve.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
