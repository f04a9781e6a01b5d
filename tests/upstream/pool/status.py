"""The status of one server of a runtime."""

from toolreeve import Toolreeve
from toolreeve.upstream.status import ServerStatus


def of(reeve: Toolreeve, name: str) -> ServerStatus:
    return next(status for status in reeve.fleet.status() if status.name == name)
