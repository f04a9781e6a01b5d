"""What stands in a program's environment before anything is declared? Only what programs cannot do without."""

from collections.abc import Mapping

from toolreeve.sandbox.grounds import SEARCH_PATH

BASE: Mapping[str, str] = {
    "PATH": ":".join(SEARCH_PATH),
    "HOME": "/tmp",  # noqa: S108  # the place's own
    "TMPDIR": "/tmp",  # noqa: S108
    "LANG": "C.UTF-8",
}
