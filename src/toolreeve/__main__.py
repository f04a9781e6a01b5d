"""Entry point of `toolreeve`, and of `python -P -m toolreeve`.

Without `-P`, Python searches the current directory first, and a package `toolreeve` found there runs instead. Hooks
start for every tool call of a client, so they import nothing of the command line.
"""

import sys


def main() -> int:
    if sys.argv[1:2] == ["hook"]:
        from toolreeve.hook.command import main as hook

        return hook(sys.argv[2:])
    from toolreeve.cli.main import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
