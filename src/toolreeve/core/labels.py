"""Labels of data, and the provenance of values in later calls.

Integrity joins to the lowest, confidentiality to the highest of the parts: joining never makes data more trusted or
less confidential. Only a person declassifies.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class Integrity(StrEnum):
    """Who vouches for the data, highest first."""

    __hash__ = str.__hash__  # an enum's own is far slower, and every result has labels

    USER = "user"
    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


class Confidentiality(StrEnum):
    """Who may see the data, widest first."""

    __hash__ = str.__hash__

    PUBLIC = "public"
    WORKSPACE = "workspace"
    PRIVATE = "private"
    SECRET = "secret"  # noqa: S105 - a label


UNTRUSTED = (Integrity.UNTRUSTED.value,)
"""Labels of a result from outside: web pages, mail, MCP servers that are not trusted."""
_INTEGRITY = tuple(Integrity)
_CONFIDENTIALITY = tuple(Confidentiality)


@dataclass(frozen=True, slots=True)
class Labels:
    """What one piece of data is labelled with."""

    integrity: Integrity = Integrity.TRUSTED
    confidentiality: Confidentiality = Confidentiality.WORKSPACE

    def join(self, other: "Labels") -> "Labels":
        """The labels of data made from both."""
        return Labels(
            max(self.integrity, other.integrity, key=_INTEGRITY.index),
            max(self.confidentiality, other.confidentiality, key=_CONFIDENTIALITY.index),
        )

    def covers(self, other: "Labels") -> bool:
        """Whether this is at least as restrictive as the other."""
        return self.join(other) == self

    @property
    def words(self) -> tuple[str, ...]:
        """As results and the record show them; without those of ordinary data of the workspace."""
        return tuple(str(each) for each in (self.integrity, self.confidentiality) if each not in _ORDINARY)

    @staticmethod
    def read(words: Iterable[str]) -> "Labels":
        """The labels of these words, to be joined: the strictest of each kind counts, and an unknown word means
        untrusted."""
        found = Labels(Integrity.USER, Confidentiality.PUBLIC)
        for word in words:
            if word in _CONFIDENTIALITY:
                found = found.join(Labels(found.integrity, Confidentiality(word)))
            else:
                known = Integrity(word) if word in _INTEGRITY else Integrity.UNTRUSTED
                found = found.join(Labels(known, found.confidentiality))
        return found


_ORDINARY = frozenset((Integrity.TRUSTED, Confidentiality.WORKSPACE))


class Authority(StrEnum):
    """What a parameter decides: to choose its value is to choose where the effect goes."""

    DESTINATION = "destination"
    HOST = "host"
    OBJECT = "object"
    AMOUNT = "amount"
    CREDENTIAL = "credential"
    COUNTERPARTY = "counterparty"
    COMMAND = "command"
    PATH = "path"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Why one value of a call needs a person, and where it stands.

    `parameter` is its path in the arguments, `kind` its authority or what is wrong with it, `why` one plain sentence
    that holds no foreign text. `source` is the tool whose result holds the value (empty: it stands nowhere), `field`
    where in it, `call_id` and `at` which call that was. `excerpt` is the foreign text around it, escaped and short.
    `lookalike` is a value that the user did name and that this one resembles. `knowable`: a yes may keep it as a known
    recipient.
    """

    parameter: str
    value: str
    kind: str
    why: str
    source: str = ""
    field: str = ""
    label: str = Integrity.UNTRUSTED.value
    call_id: str = ""
    at: float | None = None
    excerpt: str = ""
    lookalike: str = ""
    knowable: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class FlowView(Protocol):
    """What rules may ask about the flow of information into one call; computed when a rule asks."""

    def unvouched(self) -> frozenset[str]:
        """The kinds of authority for whose values nobody vouches."""
        ...

    def carries(self) -> frozenset[str]:
        """private or secret, for what the call would carry out."""
        ...

    def is_unasked(self) -> bool:
        """Whether the current request did not ask for the effect."""
        ...

    def is_vouched(self) -> bool:
        """Whether there is nothing in the call that nobody vouches for."""
        ...

    def has_read_untrusted(self) -> bool:
        """Whether untrusted text was read in the session."""
        ...
