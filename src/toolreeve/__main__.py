"""`python -P -m toolreeve` is the command line, where the command itself is not installed.

Without `-P` Python looks for us in the current directory first, and what it finds there runs in our place.
"""

import sys

from toolreeve.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
