"""Syntax tree: the closed set of forms of a parsed command.

Whatever bash accepts beyond these forms is `Opaque`, and nothing opaque is ever allowed. A word whose text is fixed is
a plain `str`; any other word is a `Template` that is expanded in a `ShellScope`.
"""

from enum import Enum, auto
from typing import NamedTuple


class Expansion(Enum):
    """A part of a word that is not literal text."""

    GLOB = auto()
    TILDE = auto()
    VARIABLE = auto()
    PARAMETER = auto()
    SUBSTITUTION = auto()
    PROCESS = auto()
    ARITHMETIC = auto()
    BRACES = auto()


class Part(NamedTuple):
    """`kind` None is literal text; `script` is the command inside a substitution."""

    kind: Expansion | None
    text: str
    quoted: bool = False
    script: "ShellScript | None" = None
    words: "tuple[RawWord, ...]" = ()


class Template(NamedTuple):
    parts: tuple[Part, ...]
    source: str


RawWord = str | Template


class Assignment(NamedTuple):
    name: str
    values: tuple[RawWord, ...]
    array: bool = False


class Redirect(NamedTuple):
    """`operator` as bash writes it, without the descriptor; a heredoc has its expanded parts as `target`."""

    operator: str
    descriptor: str
    target: RawWord


class Simple(NamedTuple):
    words: tuple[RawWord, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    source: str = ""


class Declaration(NamedTuple):
    """`export`, `declare`, `local`, `readonly`, `typeset`."""

    keyword: str
    flags: tuple[str, ...]
    assignments: tuple[Assignment, ...]
    source: str


class ShellPipeline(NamedTuple):
    stages: "tuple[Node, ...]"


class Group(NamedTuple):
    body: "ShellScript"
    subshell: bool


class Negated(NamedTuple):
    """`! body`: the next command of a list runs if it failed."""

    body: "Node"


class Redirected(NamedTuple):
    body: "Node"
    redirects: tuple[Redirect, ...]


class Loop(NamedTuple):
    """A `for` has a variable and values, a `while` or `until` a condition."""

    variable: str
    values: tuple[RawWord, ...]
    condition: "ShellScript | None"
    body: "ShellScript"


class Branch(NamedTuple):
    """`if` and `case`: the words tested, then arms of which one or none runs."""

    words: tuple[RawWord, ...]
    tests: "tuple[ShellScript, ...]"
    arms: "tuple[ShellScript, ...]"


class Test(NamedTuple):
    """`[ … ]` and `[[ … ]]`: the words and the operators."""

    words: tuple[RawWord, ...]
    operators: tuple[str, ...]
    double: bool
    source: str


class Opaque(NamedTuple):
    why: str
    source: str


class Step(NamedTuple):
    """A statement and the operator after it: `;`, `&`, `&&` or `||`."""

    node: "Node"
    operator: str


class ShellScript(NamedTuple):
    steps: tuple[Step, ...]


Node = Simple | Declaration | ShellPipeline | Group | Negated | Redirected | Loop | Branch | Test | Opaque | ShellScript
