"""Check site: a command's input and environment, and the checker's interface."""

from dataclasses import dataclass
from typing import Protocol

from toolreeve.scripted.checks.data_flow import DataFlow
from toolreeve.scripted.words import Node, Word


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSite:
    """A command's surroundings: the caller's text in its standard input (`fed`) or in its environment."""

    node: Node
    fed: str = ""
    environment: str = ""

    @property
    def statement(self) -> Node:
        """The command with its redirections."""
        around = self.node.parent
        return around if around is not None and around.type == "redirected_statement" else self.node


class Checker(Protocol):
    @property
    def flow(self) -> DataFlow: ...
    def refuse(self, word: Word, taint: str, why: str, fix: str = "") -> None: ...
    def refuse_code(self, word: Word, why: str, fix: str) -> None: ...
    def file_taint(self, word: Word) -> str: ...
    def begin(self, word: Word, beginnings: tuple[str, ...], what: str) -> None: ...
    def can_begin(self, word: Word) -> bool: ...
