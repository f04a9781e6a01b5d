"""Declarations: what the names of a script are assigned and declared as.

Includes what the script gives to `eval` and `trap`: that is part of the same shell.
"""

import re
from abc import abstractmethod
from collections.abc import Mapping
from itertools import product

from toolreeve.core.evaluators import plain_name
from toolreeve.scripted.checks.grammar import parse_bash
from toolreeve.scripted.checks.variables import may_fill, may_unset
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.words import EXPANSIONS, REFERENCE, Node, ValueHole, Word, WordReader, text_of, walk

FROM_OUTSIDE = frozenset(
    {*map(str, range(1, 10)), "@", "*", "REPLY", "MAPFILE", "BASH_REMATCH", "OPTARG", "COPROC", "_"}
    | {"BASH_ARGV", "BASH_COMMAND"}
)
_OWN_INTEGERS = frozenset({"BASHPID", "EPOCHSECONDS", "HISTCMD", "LINENO", "OPTIND", "RANDOM", "SECONDS", "SRANDOM"})
"""Variables of bash itself that evaluate what is assigned to them."""
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
REDIRECTS = ("file_redirect", "herestring_redirect", "heredoc_redirect")
ASSIGNS = re.compile(r"\$\{(\w+):?=")
_WORDS = ("word", "string", "raw_string", "concatenation", "command_name")
DECLARES = frozenset({"declare", "export", "local", "readonly", "typeset"})
_MAX_SPELLINGS = 16
_MAX_NESTED = 5
Words = list[Word]


class Declarations:
    """`holes` are the references of the text, by their index in the array; `outer` are names of an outer shell. What is
    tainted (`names`) comes from the analysis that builds on this."""

    names: set[str]

    def __init__(self, root: Node, holes: Mapping[int, ValueHole], outer: frozenset[str]) -> None:
        self.root = root
        self.holes = holes
        self._outer = outer
        self.integers: set[str] = set(_OWN_INTEGERS)
        self.maps: set[str] = set()
        self.references: set[str] = set()
        self.exported: set[str] = set()
        self.functions: dict[str, list[Node]] = {}
        self.assigned: dict[str, list[Node]] = {}
        self.unclear: Node | None = None
        self._changed: set[str] = set()
        self.exports_all = False
        self._reader = WordReader(holes, self.taint, self._replaced)
        self.nodes: list[Node] = []
        self._read(list(walk(root)))

    @abstractmethod
    def taint(self, node: Node) -> str:
        """What of the caller's the node holds; empty if nothing."""

    @abstractmethod
    def _replaced(self, word: Node) -> str:
        """What of the caller's replaces a pattern; empty if nothing."""

    def _read(self, nodes: list[Node]) -> None:
        """The script, and what it gives to `eval` and `trap`: that is part of the same shell."""
        read: set[str] = set()
        for _ in range(_MAX_NESTED):
            self.nodes += nodes
            self._find_declared(nodes)
            texts = {text for node in nodes if node.type == "command" for text in self._evaluated(node)} - read
            read |= texts
            nodes = [node for text in sorted(texts) for node in _nodes_of(text)]

    def _evaluated(self, command: Node) -> list[str]:
        """The code that `eval` or `trap` gets, as far as it is fixed."""
        words = self.command_words(command)
        while words and set(self.texts_of(words[0])) & {"builtin", "command", "--"}:
            words = words[1:]
        names = set(self.texts_of(words[0])) if words else set()
        if "trap" in names:
            return [text for word in words[1:3] for text in self.texts_of(word) or [word.code]]
        if "eval" not in names:
            return []
        choices = [self.texts_of(word) or [word.code] for word in words[1:]]
        return [" ".join(texts) for texts in _products(choices)] or [" ".join(word.code for word in words[1:])]

    def command_words(self, command: Node) -> Words:
        own = (each for each in command.children if each.type not in (*REDIRECTS, "variable_assignment"))
        return [self.word(each) for each in own]

    def word(self, node: Node) -> Word:
        return self._reader.word(node)

    def is_function(self, name: str, call: Node) -> bool:
        """Whether a call certainly runs a function instead of the program of this name, also inside the function."""
        definitions = self.functions.get(name, [])
        if not any(each.parent.type == "program" and each.end_byte <= call.start_byte for each in definitions):
            return False
        if any(may_unset(node, name) for node in self.nodes):
            return False
        return not any(self._calls(each, plain_name(name)) for each in definitions)

    def _calls(self, function: Node, program: str) -> bool:
        words = (part for part in walk(function.child_by_field_name("body")) if part.type in _WORDS)
        return any(plain_name(self.word(each).text or "") == program for each in words)

    def constants(self, name: str) -> list[str] | None:
        """The texts that a variable may hold, or None if they are not fixed."""
        if name in self.names or name not in self.assigned or name in self._changed:
            return None
        texts = [self.word(value).text for value in self.assigned[name] if value.type != "array"]
        fixed = [text for text in texts if text is not None]
        return fixed if fixed and len(fixed) == len(self.assigned[name]) else None

    def spellings(self, word: Word) -> list[str]:
        """Every text that a word may be; none if one is not fixed."""
        choices = [[part] if isinstance(part, str) else self.constants(part.variable) or [] for part in word.parts]
        return ["".join(texts) for texts in _products(choices)]

    def only_assigned(self, name: str) -> Words | None:
        """What `name=…` puts into a variable; None if something else may set it, or it is set from itself."""
        values = self.assigned.get(name, [])
        if not values or name in FROM_OUTSIDE or name in self._outer or name in self.references:
            return None
        if any(value.type == "array" or self._refers(value) for value in values):
            return None
        if any(may_fill(node, name) for node in self.nodes):
            return None
        return [self.word(value) for value in values]

    def _refers(self, value: Node) -> bool:
        """Whether it contains an expansion of something other than a value."""
        return any(
            part.type in EXPANSIONS and REFERENCE.fullmatch(text_of(part).strip()) is None for part in walk(value)
        )

    def elements(self, name: str) -> Words | None:
        """The words of an array, in the order of the script; None if something else sets it."""
        values = self.assigned.get(name, [])
        if not values or any(value.type != "array" for value in values):
            return None
        return [self.word(each) for value in values for each in value.children if each.type not in ("(", ")")]

    def _find_declared(self, nodes: list[Node]) -> None:
        for node in nodes:
            if node.type == "function_definition":
                self.functions.setdefault(text_of(node.child_by_field_name("name")), []).append(node)
            elif node.type == "variable_assignment":
                self._find_assigned(node)
            elif node.type == "for_statement":
                self._find_loop(node)
            elif node.type == "expansion" and (found := ASSIGNS.match(text_of(node).strip())):
                self._changed.add(found[1])
            elif node.type == "unset_command":
                self._changed |= set(IDENTIFIER.findall(text_of(node)))
            elif node.type == "command" and re.match(r"set\s+-\w*a|set\s+-o\s+allexport", text_of(node)):
                self.exports_all = True
        for node in nodes:
            if node.type == "declaration_command" or (node.type == "command" and self.declares(node)):
                self._declare(node)

    def _find_assigned(self, node: Node) -> None:
        name = name_of(node)
        if any(each.type == "+=" for each in node.children):
            self._changed.add(name)
        if (value := node.child_by_field_name("value")) is not None:
            self.assigned.setdefault(name, []).append(value)

    def _find_loop(self, node: Node) -> None:
        name = text_of(node.child_by_field_name("variable"))
        values = node.children_by_field_name("value")
        if not values or any(set("*?[{~") & set(text_of(value)) for value in values):
            self._changed.add(name)
        self.assigned.setdefault(name, []).extend(values)

    def declares(self, node: Node) -> bool:
        """Whether a command is a declaration: `builtin declare`, or the name of the builtin quoted."""
        for word in self.command_words(node):
            texts = set(self.texts_of(word))
            if texts & DECLARES:
                return True
            if not texts & {"builtin", "command"} and not (word.text or "").startswith("-"):
                break
        return False

    def texts_of(self, word: Word) -> list[str]:
        """The texts that a word may be, as far as they are fixed."""
        if word.text is not None:
            return [word.text]
        part = word.parts[0]
        return (self.constants(part.variable) or []) if word.is_whole_value and not isinstance(part, str) else []

    def flags(self, node: Node) -> str:
        """The letters of a declaration's options; those that matter if an option is not fixed."""
        found = ""
        for each in node.children[1:]:
            if each.type in (*REDIRECTS, "variable_assignment", "variable_name"):
                continue
            word = self.word(each)
            texts = self.texts_of(word)
            found += "".join(text for text in texts if text.startswith("-"))
            if not texts and (word.leading is not None or word.start.startswith("-")):
                found += "in"
        return found

    def _declare(self, node: Node) -> None:
        flags = self.flags(node)
        named = [each for each in node.children if each.type in ("variable_assignment", "variable_name")]
        names = {name_of(each) for each in named}
        words = [self.word(each) for each in node.children[1:] if each not in named and each.type not in REDIRECTS]
        for word in words:
            spelled = self.spellings(word)
            names |= {found[0] for text in spelled if (found := IDENTIFIER.match(text))}
            if not spelled and set(flags) & {"i", "n"}:
                self.unclear = self.unclear or node
        if "i" in flags:
            self.integers |= names
        if "A" in flags:
            self.maps |= names
        if "n" in flags:
            self.references |= names
        if "x" in flags or text_of(node).startswith("export"):
            self.exported |= names


def name_of(node: Node) -> str:
    if node.type == "variable_name":
        return text_of(node)
    return next((text_of(each) for each in walk(node) if each.type == "variable_name"), "")


def _products(choices: list[list[str]]) -> list[tuple[str, ...]]:
    """Every choice of one from each; none if there are too many."""
    count = 1
    for choice in choices:
        count *= len(choice)
    return list(product(*choices)) if count <= _MAX_SPELLINGS else []


def _nodes_of(code: str) -> list[Node]:
    """Code that is not understood is refused where it is checked."""
    try:
        return list(walk(parse_bash(code)))
    except TemplateProblem:
        return []
