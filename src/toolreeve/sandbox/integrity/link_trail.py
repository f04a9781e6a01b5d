"""Link trail: resolves a path link by link.

Nothing is opened, so the kernel follows nothing but folders.
"""

import os
from typing import NamedTuple

_MOST_LINKS = 40


class LinkTrail(NamedTuple):
    """The links of a path, and its end without links; None for a loop."""

    links: tuple[str, ...]
    end: str | None


def follow(path: str) -> LinkTrail:
    """Resolve an absolute path, whether or not its end exists."""
    links: list[str] = []
    done: list[str] = []
    left = path.split("/")[::-1]
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":
            del done[-1:]
            continue
        here = "/" + "/".join([*done, name])
        try:
            target = os.readlink(here)
        except OSError:  # not a link, or missing
            done.append(name)
            continue
        if len(links) == _MOST_LINKS:
            return LinkTrail(tuple(dict.fromkeys(links)), None)
        links.append(here)
        if target.startswith("/"):
            done.clear()
        left += target.split("/")[::-1]
    return LinkTrail(tuple(dict.fromkeys(links)), "/" + "/".join(done))
