"""`python -m toolreeve` is the command line."""

import sys

from toolreeve.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
