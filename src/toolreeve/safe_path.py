"""Removes the current directory from the import path of `python -m`.

Python puts it before everything else, its own library included, so a workspace with a file `asyncio.py` would run
instead of the library. Imports nothing that is not loaded already. Modules that Python imports earlier, and the search
for this very package, cannot be protected from here: use `python -P -m` or the installed command.
"""

import sys


def is_program(argv: list[str], given: list[str]) -> bool:
    """Whether `-m` names this package. `argv` says `-m` until its module is found; `given` is the whole command line,
    in which as many words follow the module as follow the `-m`."""
    if argv[:1] != ["-m"] or len(given) <= len(argv):
        return False
    word = given[-len(argv)]
    module = word.partition("m")[2] if word.startswith("-") else word
    return module.partition(".")[0] == "toolreeve"


if is_program(sys.argv, sys.orig_argv) and not sys.flags.safe_path:
    del sys.path[0]
