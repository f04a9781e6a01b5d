"""Where a path leads, link by link. Nothing is opened, so nothing is followed by the kernel but folders."""

import os
from typing import NamedTuple

_MOST_LINKS = 40


class LinkTrail(NamedTuple):
    """The links that a path leads over, and where it ends, free of links; None where it never ends."""

    links: tuple[str, ...]
    end: str | None


def follow(path: str) -> LinkTrail:
    """An absolute path, whether or not there is something at its end."""
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
        except OSError:  # no link, or nothing at all
            done.append(name)
            continue
        if len(links) == _MOST_LINKS:
            return LinkTrail(tuple(dict.fromkeys(links)), None)
        links.append(here)
        if target.startswith("/"):
            done.clear()
        left += target.split("/")[::-1]
    return LinkTrail(tuple(dict.fromkeys(links)), "/" + "/".join(done))
