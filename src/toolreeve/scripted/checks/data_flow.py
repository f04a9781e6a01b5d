"""Taint analysis: which variables, functions and files hold values of the caller.

Over-approximates: what a program prints, or reads from its input, counts as the caller's if the caller's values went
in.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

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
from toolreeve.scripted.checks.declarations import (
    ASSIGNS,
    FROM_OUTSIDE,
    IDENTIFIER,
    REDIRECTS,
    Declarations,
    Words,
    name_of,
)
from toolreeve.scripted.checks.variables import Filled, filled_by
from toolreeve.scripted.words import (
    DIRECTORY_TILDE,
    EXPANSIONS,
    GLOB,
    REFERENCE,
    Node,
    ValueHole,
    Word,
    first_taint,
    text_of,
    walk,
)

_FILE_IN_CODE = re.compile(r"""["']([\w./-]+)["']|(?:(?<=w )|(?<=>))[\w./-]+""")
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
ANY_FILE = "*"
PROGRAMMED = frozenset({*AWKS, *SEDS, *INTERPRETERS, *SQL_DIALECTS})


def is_input(redirect: Node) -> bool:
    """Heredocs look like `< <(…)` here."""
    return text_of(redirect).lstrip("0123456789").startswith("<")


class DataFlow(Declarations):
    """`holes` are the references of this text, by their index in the array; `outer` are names, and `files` files, that
    an outer shell has tainted."""

    def __init__(
        self,
        root: Node,
        holes: Mapping[int, ValueHole],
        outer: frozenset[str] = frozenset(),
        files: frozenset[str] = frozenset(),
    ) -> None:
        self.names: set[str] = {*FROM_OUTSIDE, *outer}
        self.tainted_functions: set[str] = set()
        self.tainted_files: set[str] = set(files)
        self.created = ""
        self.filled: dict[str, Node] = {}
        self.fed: dict[int, str] = {}
        super().__init__(root, holes, outer)
        self.spread()

    def spread(self) -> None:
        """Propagate the taint until nothing new is found."""
        while self._grow():
            pass

    def take_files(self, inner: "DataFlow") -> None:
        """What the code of an inner shell wrote from values."""
        self.tainted_files |= inner.tainted_files
        self.created = self.created or inner.created

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
            own = each.type in (*REDIRECTS, "variable_assignment") or called.startswith("-")
            if not own and called not in ("builtin", "command", "env"):
                break
        return ""

    def mentions(self, text: str) -> str:
        """As `taint`, for arithmetic, where a name needs no `$`."""
        for found in REFERENCE.findall(text):
            if self.holes[int(found)].tainted:
                return self.holes[int(found)].label
        own = REFERENCE.sub(" ", text)
        named = [*IDENTIFIER.findall(own), *re.findall(r"\$\{?([0-9@*])", own)]
        return next((name for name in named if name in self.names), "")

    def is_tainted_file(self, path: str) -> bool:
        """By its last component, because a script may change its directory."""
        name = _last_name(path)
        if not name or not self.tainted_files:
            return False
        return any(fnmatchcase(tainted, name) for tainted in self.tainted_files if tainted != ANY_FILE)

    @property
    def size(self) -> int:
        """How much is tainted: it only grows."""
        return (
            len(self.names) + len(self.tainted_files) + len(self.tainted_functions) + len(self.fed) + bool(self.created)
        )

    def _grow(self) -> bool:
        before = self.size
        for node in self.nodes:
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
        own = self.names - FROM_OUTSIDE
        candidates = own if self.exports_all else own & self.exported
        return min(candidates, default="")

    def _assignment(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        if value is not None and self.taint(value):
            self.names.add(name_of(node))

    def _expansion(self, node: Node) -> None:
        """`${name:=value}` is an assignment too."""
        found = ASSIGNS.match(text_of(node).strip())
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
        words = self.command_words(node)
        if not words:
            return
        texts = [(self.texts_of(word) or [""])[0] for word in words]
        self._fill(node, filled_by(words, self.spellings))
        if first_taint(words) and _changes_directory(texts):
            self.names |= DIRECTORIES
        for part in node.children:
            if part.type == "variable_assignment" and name_of(part) in self.names:
                self.exported.add(name_of(part))
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
