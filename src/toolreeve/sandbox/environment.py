"""What stands in a program's environment before anything is declared? Only what programs cannot do without.

HOME and TMPDIR are the slot's own.
"""

from collections.abc import Mapping

from toolreeve.sandbox.layout import SEARCH_PATH

BASE: Mapping[str, str] = {
    "PATH": ":".join(SEARCH_PATH),
    "LANG": "C.UTF-8",
}
