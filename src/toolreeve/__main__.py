"""Entry point of `toolreeve`, and of `python -P -m toolreeve`.

Without `-P`, Python searches the current directory first, and a package `toolreeve` found there runs instead. Hooks
start for every tool call of a client, so they import nothing of the command line.
"""

import os
import sys


def main() -> int:
    if sys.argv[1:2] == ["hook"]:
        from toolreeve.hook.command import main as hook

        status = hook(sys.argv[2:])
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # taking the interpreter down takes as long as a decision
    from toolreeve.cli.main import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
