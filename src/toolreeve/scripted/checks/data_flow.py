"""Taint analysis: which variables, functions and files hold values of the caller.

Over-approximates: what a program prints, or reads from its input, counts as the caller's if the caller's values went
in.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import product

from toolreeve.core.evaluators import (
    AWKS,
    COMPILERS,
    COPIERS,
    INTERPRETERS,
    SEDS,
    SQL_DIALECTS,
    WRAPPERS,
    WRITERS,
    plain_name,
)
from toolreeve.scripted.checks.grammar import parse_bash
from toolreeve.scripted.checks.variables import Filled, filled_by, may_fill, may_unset
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.words import (
    DIRECTORY_TILDE,
    EXPANSIONS,
    GLOB,
    REFERENCE,
    Node,
    ValueHole,
    Word,
    WordReader,
    first_taint,
    text_of,
    walk,
)

_FROM_OUTSIDE = frozenset(
    {*map(str, range(1, 10)), "@", "*", "REPLY", "MAPFILE", "BASH_REMATCH", "OPTARG", "COPROC", "_"}
    | {"BASH_ARGV", "BASH_COMMAND"}
)
_OWN_INTEGERS = frozenset({"BASHPID", "EPOCHSECONDS", "HISTCMD", "LINENO", "OPTIND", "RANDOM", "SECONDS", "SRANDOM"})
"""Variables of bash itself that evaluate what is assigned to them."""
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_REDIRECTS = ("file_redirect", "herestring_redirect", "heredoc_redirect")
_FILE_IN_CODE = re.compile(r"""["']([\w./-]+)["']|(?:(?<=w )|(?<=>))[\w./-]+""")
_ASSIGNS = re.compile(r"\$\{(\w+):?=")
_WORDS = ("word", "string", "raw_string", "concatenation", "command_name")
DECLARES = frozenset({"declare", "export", "local", "readonly", "typeset"})
_UNPACKERS = frozenset({"7z", "7za", "7zr", "7zz", "ar", "cpio", "patch", "pax", "unrar", "unzip", "uudecode"})
_TARS = frozenset({"bsdtar", "gtar", "star", "tar"})
DIRECTORIES = frozenset({"PWD", "OLDPWD", "DIRSTACK"})
"""Variables that hold the directory, once the caller has chosen it."""
_CREATORS = frozenset(
    {"cp", "csplit", "curl", "dd", "install", "link", "ln", "mkdir", "mkfifo", "mknod", "mktemp", "mv", "rsync", "scp"}
    | {"split", "sponge", "tee", "touch", "truncate", "wget"}
)
"""Programs that make a file or folder whose name stands in their arguments."""
_LISTERS = frozenset({"compgen", "dir", "du", "fd", "fdfind", "find", "ls", "tree", "vdir"})
_NOT_NAMES = ("case_item", "expansion", "test_command", "binary_expression", "unary_expression")
"""Where a pattern is not replaced by names of files."""
_MAX_SPELLINGS = 16
_MAX_NESTED = 5
ANY_FILE = "*"
PROGRAMMED = frozenset({*AWKS, *SEDS, *INTERPRETERS, *SQL_DIALECTS})
Words = list[Word]


def is_input(redirect: Node) -> bool:
    """Heredocs look like `< <(…)` here."""
    return text_of(redirect).lstrip("0123456789").startswith("<")


class DataFlow:
    """`holes` are the references of this text, by their index in the array; `outer` are names, and `files` files, that
    an outer shell has tainted."""

    def __init__(
        self,
        root: Node,
        holes: Mapping[int, ValueHole],
        outer: frozenset[str] = frozenset(),
        files: frozenset[str] = frozenset(),
    ) -> None:
        self.root = root
        self.holes = holes
        self._outer = outer
        self.integers: set[str] = set(_OWN_INTEGERS)
        self.maps: set[str] = set()
        self.references: set[str] = set()
        self.exported: set[str] = set()
        self.names: set[str] = {*_FROM_OUTSIDE, *outer}
        self.functions: dict[str, list[Node]] = {}
        self.tainted_functions: set[str] = set()
        self.tainted_files: set[str] = set(files)
        self.created = ""
        self.assigned: dict[str, list[Node]] = {}
        self._changed: set[str] = set()
        self.filled: dict[str, Node] = {}
        self.unclear: Node | None = None
        self.fed: dict[int, str] = {}
        self._exports_all = False
        self._reader = WordReader(holes, self.taint, self._replaced)
        self._nodes: list[Node] = []
        self._read(list(walk(root)))
        self.spread()

    def _read(self, nodes: list[Node]) -> None:
        """The script, and what it gives to `eval` and `trap`: that is part of the same shell."""
        read: set[str] = set()
        for _ in range(_MAX_NESTED):
            self._nodes += nodes
            self._find_declared(nodes)
            texts = {text for node in nodes if node.type == "command" for text in self._evaluated(node)} - read
            read |= texts
            nodes = [node for text in sorted(texts) for node in _nodes_of(text)]

    def _evaluated(self, command: Node) -> list[str]:
        """The code that `eval` or `trap` gets, as far as it is fixed."""
        words = self._command_words(command)
        while words and set(self._texts(words[0])) & {"builtin", "command", "--"}:
            words = words[1:]
        names = set(self._texts(words[0])) if words else set()
        if "trap" in names:
            return [text for word in words[1:3] for text in self._texts(word) or [word.code]]
        if "eval" not in names:
            return []
        choices = [self._texts(word) or [word.code] for word in words[1:]]
        return [" ".join(texts) for texts in _products(choices)] or [" ".join(word.code for word in words[1:])]

    def _command_words(self, command: Node) -> Words:
        own = (each for each in command.children if each.type not in (*_REDIRECTS, "variable_assignment"))
        return [self.word(each) for each in own]

    def spread(self) -> None:
        """Propagate the taint until nothing new is found."""
        while self._grow():
            pass

    def take_files(self, inner: "DataFlow") -> None:
        """What the code of an inner shell wrote from values."""
        self.tainted_files |= inner.tainted_files
        self.created = self.created or inner.created

    def word(self, node: Node) -> Word:
        return self._reader.word(node)

    def taint(self, node: Node) -> str:
        """The caller's value in a node, as a person would name it; empty if there is none."""
        for found in REFERENCE.findall(text_of(node)):
            hole = self.holes[int(found)]
            if hole.tainted:
                return hole.label
        for part in walk(node):
            if taint := self._taint_of_part(part, whole=part.id == node.id):
                return taint
        return ""

    def _taint_of_part(self, part: Node, *, whole: bool) -> str:
        if part.type in EXPANSIONS:
            for each in walk(part):
                name = text_of(each)
                if each.type.endswith("variable_name") and (name in self.names or re.fullmatch("[1-9][0-9]*", name)):
                    return f"${name}"
                if not whole and f"${name}" in self.tainted_files:
                    return f"the file ${name}"
        elif part.type == "command" and (name := self._tainted_printer(part)):
            return f"what {name} prints"
        elif part.type == "word":
            return self._taint_of_name(part)
        return ""

    def _taint_of_name(self, word: Node) -> str:
        if self.tainted_files and self.is_tainted_file(text_of(word)):
            return f"the file {text_of(word)}"
        return self._replaced(word)

    def _replaced(self, word: Node) -> str:
        """The taint of what bash puts in the place of a word: the directory, or names of files that a value made."""
        text = text_of(word)
        if "PWD" in self.names and DIRECTORY_TILDE.search(text):
            return text
        if self.created and GLOB.search(text) and word.parent.type not in _NOT_NAMES:
            return f"the name of a file ({self.created})"
        return ""

    def _tainted_printer(self, command: Node) -> str:
        """The function that a command calls, or `pwd`, also by a path or behind `command`."""
        for each in command.children:
            called = text_of(each).lstrip("\\")
            for name in (called, called.rpartition("/")[2]):
                if name in self.tainted_functions:
                    return name
            own = each.type in (*_REDIRECTS, "variable_assignment") or called.startswith("-")
            if not own and called not in ("builtin", "command", "env"):
                break
        return ""

    def mentions(self, text: str) -> str:
        """As `taint`, for arithmetic, where a name needs no `$`."""
        for found in REFERENCE.findall(text):
            if self.holes[int(found)].tainted:
                return self.holes[int(found)].label
        own = REFERENCE.sub(" ", text)
        named = [*_IDENTIFIER.findall(own), *re.findall(r"\$\{?([0-9@*])", own)]
        return next((name for name in named if name in self.names), "")

    def is_tainted_file(self, path: str) -> bool:
        """By its last component, because a script may change its directory."""
        name = _last_name(path)
        if not name or not self.tainted_files:
            return False
        return any(fnmatchcase(tainted, name) for tainted in self.tainted_files if tainted != ANY_FILE)

    def is_function(self, name: str, call: Node) -> bool:
        """Whether a call certainly runs a function instead of the program of this name, also inside the function."""
        definitions = self.functions.get(name, [])
        if not any(each.parent.type == "program" and each.end_byte <= call.start_byte for each in definitions):
            return False
        if any(may_unset(node, name) for node in self._nodes):
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
        if not values or name in _FROM_OUTSIDE or name in self._outer or name in self.references:
            return None
        if any(value.type == "array" or self._refers(value) for value in values):
            return None
        if any(may_fill(node, name) for node in self._nodes):
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
            elif node.type == "expansion" and (found := _ASSIGNS.match(text_of(node).strip())):
                self._changed.add(found[1])
            elif node.type == "unset_command":
                self._changed |= set(_IDENTIFIER.findall(text_of(node)))
            elif node.type == "command" and re.match(r"set\s+-\w*a|set\s+-o\s+allexport", text_of(node)):
                self._exports_all = True
        for node in nodes:
            if node.type == "declaration_command" or (node.type == "command" and self.declares(node)):
                self._declare(node)

    def _find_assigned(self, node: Node) -> None:
        name = _name_of(node)
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
        for word in self._command_words(node):
            texts = set(self._texts(word))
            if texts & DECLARES:
                return True
            if not texts & {"builtin", "command"} and not (word.text or "").startswith("-"):
                break
        return False

    def _texts(self, word: Word) -> list[str]:
        """The texts that a word may be, as far as they are fixed."""
        if word.text is not None:
            return [word.text]
        part = word.parts[0]
        return (self.constants(part.variable) or []) if word.is_whole_value and not isinstance(part, str) else []

    def flags(self, node: Node) -> str:
        """The letters of a declaration's options; those that matter if an option is not fixed."""
        found = ""
        for each in node.children[1:]:
            if each.type in (*_REDIRECTS, "variable_assignment", "variable_name"):
                continue
            word = self.word(each)
            texts = self._texts(word)
            found += "".join(text for text in texts if text.startswith("-"))
            if not texts and (word.leading is not None or word.start.startswith("-")):
                found += "in"
        return found

    def _declare(self, node: Node) -> None:
        flags = self.flags(node)
        named = [each for each in node.children if each.type in ("variable_assignment", "variable_name")]
        names = {_name_of(each) for each in named}
        words = [self.word(each) for each in node.children[1:] if each not in named and each.type not in _REDIRECTS]
        for word in words:
            spelled = self.spellings(word)
            names |= {found[0] for text in spelled if (found := _IDENTIFIER.match(text))}
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

    @property
    def size(self) -> int:
        """How much is tainted: it only grows."""
        return (
            len(self.names) + len(self.tainted_files) + len(self.tainted_functions) + len(self.fed) + bool(self.created)
        )

    def _grow(self) -> bool:
        before = self.size
        for node in self._nodes:
            if (step := _STEPS.get(node.type)) is not None:
                step(self, node)
        for name, definitions in self.functions.items():
            if any(self.taint(each.child_by_field_name("body")) for each in definitions):
                self.tainted_functions.add(name)
        if "PWD" in self.names:
            self.tainted_functions |= {"pwd", "dirs"}
        if ANY_FILE in self.tainted_files:
            self.created = self.created or "any"
        if self.created:
            self.tainted_functions |= _LISTERS
        return self.size > before

    @property
    def tainted_environment(self) -> str:
        """An exported variable with the caller's text in it."""
        own = self.names - _FROM_OUTSIDE
        candidates = own if self._exports_all else own & self.exported
        return min(candidates, default="")

    def _assignment(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        if value is not None and self.taint(value):
            self.names.add(_name_of(node))

    def _expansion(self, node: Node) -> None:
        """`${name:=value}` is an assignment too."""
        found = _ASSIGNS.match(text_of(node).strip())
        if found and self.taint(node):
            self.names.add(found[1])

    def _loop(self, node: Node) -> None:
        if any(self.taint(value) for value in node.children_by_field_name("value")):
            self.names.add(text_of(node.child_by_field_name("variable")))

    def _pipeline(self, node: Node) -> None:
        taint = ""
        for stage in (each for each in node.children if each.is_named):
            if taint:
                self.feed(stage, taint)
            taint = taint or self.taint(stage)

    def _redirect(self, node: Node) -> None:
        owner = node.parent
        if is_input(node):
            self._feed_from(node, owner)
            return
        body = owner.child_by_field_name("body") if owner.type == "redirected_statement" else owner
        if body is None or re.match(r"exec\s*$", text_of(body)):
            body = self.root
        targets = node.children_by_field_name("destination") or node.children[-1:]
        self.created = self.created or first_taint(map(self.word, targets))
        taint = self._written(body)
        if not taint:
            return
        for target in targets:
            self._taint_file(self.word(target))
            for inner in walk(target):
                if inner.type == "process_substitution":
                    self.feed(inner, taint)

    def _feed_from(self, redirect: Node, owner: Node) -> None:
        taint = self.taint(redirect)
        if not taint:
            return
        is_exec = re.match(r"exec\s*(?:\d*|\{\w+\})<", text_of(owner).lstrip())
        self.feed(self.root if is_exec else owner, taint)

    def _written(self, body: Node) -> str:
        for part in walk(body):
            if part.type == "command" and part.id in self.fed:
                return self.fed[part.id]
        return self.taint(body)

    def feed(self, node: Node, taint: str) -> None:
        """All commands below may read the caller's text from their input; so may the functions that they call."""
        for part in walk(node):
            if part.type != "command" or part.id in self.fed:
                continue
            self.fed[part.id] = taint
            name = part.child_by_field_name("name")
            if name is not None and text_of(name) in self.functions:
                for each in self.functions[text_of(name)]:
                    self.feed(each, taint)

    def _command(self, node: Node) -> None:
        words = self._command_words(node)
        if not words:
            return
        texts = [(self._texts(word) or [""])[0] for word in words]
        self._fill(node, filled_by(words, self.spellings))
        if first_taint(words) and _changes_directory(texts):
            self.names |= DIRECTORIES
        for part in node.children:
            if part.type == "variable_assignment" and _name_of(part) in self.names:
                self.exported.add(_name_of(part))
        name = plain_name(words[0].text or "")
        if name == "coproc":
            self.feed(node, "what is written to a coprocess")
        held = self.fed.get(node.id, "") or self._named_file(words)
        taint = held or first_taint(words)
        if not taint:
            return
        for part in walk(node):
            if part.type == "process_substitution" and text_of(part).startswith(">("):
                self.feed(part, taint)
        self._write(words, holds_taint=bool(held))
        if name in PROGRAMMED:
            self._write_by_program(words)
        if _unpacks(words):
            self.tainted_files.add(ANY_FILE)
        if first_taint(words) and _creates(words):
            self.created = self.created or first_taint(words)

    def _fill(self, node: Node, filled: Filled) -> None:
        for name in filled.names:
            self.names.add(name)
            self.filled[name] = node
        if filled.unclear:
            self.unclear = self.unclear or node

    def _named_file(self, words: Words) -> str:
        return next((str(word.text) for word in words[1:] if self.is_tainted_file(word.text or "")), "")

    def _write(self, words: Words, *, holds_taint: bool) -> None:
        """Files that a program writes by itself, if its input is the caller's, or the caller chooses it."""
        names = [plain_name(word.text or "") for word in words]
        at = next((index for index, name in enumerate(names[:4]) if name in WRITERS), None)
        if at is None:
            return
        before = ""
        for word in words[at + 1 :]:
            if names[at] in ("curl", "wget"):
                chosen = re.fullmatch(r"-\w*[oO]|--output|--output-document", before) is not None
            else:
                chosen = holds_taint or (names[at] in COPIERS and not word.taint)
            if chosen and not word.start.startswith("-"):
                self._taint_file(word)
            before = word.text or ""
        if holds_taint and names[at] in COMPILERS:
            self.tainted_files.add("a.out")

    def _write_by_program(self, words: Words) -> None:
        """A program in awk, Python or SQL may write to any file that it names."""
        for word in words[1:]:
            for found in _FILE_IN_CODE.finditer(word.shape):
                self.tainted_files |= {_last_name(found[1] or found[0])} - {""}

    def _taint_file(self, word: Word) -> None:
        """The caller's text is written to this file."""
        texts = [word.text] if word.text is not None else self._spellings(word)
        for text in texts:
            if not re.match(r"-|/dev/(?:null|std|fd|tty)", text):
                self.tainted_files |= {_last_name(text.rpartition("=")[2])} - {""}

    def _spellings(self, word: Word) -> list[str]:
        """What is known of a name that is not fixed."""
        found = [word.end] if "/" in word.end else []
        if word.taint:
            found.append(ANY_FILE)
        for part in word.parts:
            if not isinstance(part, str) and part.variable:
                found += [f"${part.variable}", *(self.constants(part.variable) or [])]
        return found


_STEPS = {
    "variable_assignment": DataFlow._assignment,
    "expansion": DataFlow._expansion,
    "for_statement": DataFlow._loop,
    "pipeline": DataFlow._pipeline,
    "file_redirect": DataFlow._redirect,
    "herestring_redirect": DataFlow._redirect,
    "command": DataFlow._command,
}


def _last_name(path: str) -> str:
    return re.sub(r"['\"\\]", "", path).rstrip("/").rpartition("/")[2]


def _name_of(node: Node) -> str:
    if node.type == "variable_name":
        return text_of(node)
    return next((text_of(each) for each in walk(node) if each.type == "variable_name"), "")


def _changes_directory(texts: list[str]) -> bool:
    return next((text for text in texts if text not in ("builtin", "command", "--")), "") in ("cd", "pushd")


def _unpacks(words: Words) -> bool:
    """Whether a command writes files that its input names, also behind a wrapper."""
    texts = [word.text or "" for word in words]
    for index, name in enumerate(_possible_programs(words)):
        options = texts[index + 1 :]
        if name in _UNPACKERS:
            return True
        if name == "git":
            return any(option in ("apply", "am", "clone") for option in options)
        if name in _TARS:
            short = [option for option in options[:1] if not option.startswith("-")]
            short += [option for option in options if re.match(r"-\w", option)]
            extracts = any("x" in each for each in short) or any(re.match("--(?:ex|ge)", each) for each in options)
            packs = any(set(each) & set("ctru") for each in short) or bool({"--create", "--list"} & set(options))
            return extracts or not packs
    return False


def _creates(words: Words) -> bool:
    """Whether a command makes a file or a folder that its arguments name, also behind a wrapper."""
    return any(name in _CREATORS for name in _possible_programs(words))


def _possible_programs(words: Words) -> list[str]:
    """The words that may name the program: the first, and those after it if that is a wrapper."""
    names = [plain_name(word.text or "") for word in words]
    return names[:6] if names[0] in WRAPPERS else names[:1]


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
