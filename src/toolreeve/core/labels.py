"""Labels of results: where data comes from, and who may see it.

The values are what results and the record show. Integrity joins to the lowest, confidentiality to the highest of the
parts.
"""

from enum import StrEnum


class Integrity(StrEnum):
    """Who vouches for the data, highest first."""

    USER = "user"
    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


class Confidentiality(StrEnum):
    """Who may see the data, widest first."""

    PUBLIC = "public"
    WORKSPACE = "workspace"
    PRIVATE = "private"
    SECRET = "secret"  # noqa: S105 - a label


UNTRUSTED = (Integrity.UNTRUSTED.value,)
"""Labels of a result from outside: web pages, mail, MCP servers that are not trusted."""
