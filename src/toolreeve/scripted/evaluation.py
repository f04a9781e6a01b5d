"""Where would a value be more than data? Where bash, or a program that it starts, evaluates what it is given.

Values are never part of the script's text, so nothing is parsed that the author did not write. What is left are places
that evaluate a second time: names of programs, `eval`, arithmetic, `sh -c`, interpreters. They are refused when the
tool is loaded. Fails closed: a script that the grammar does not understand is refused too.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from toolreeve.core.bash import masked
from toolreeve.scripted import programs
from toolreeve.scripted.flow import ARRAY, REFERENCE, Flow, Hole, Node, is_reference, literal, text_of, walk
from toolreeve.scripted.syntax import TemplateProblem

Beginnings = dict[int, set[str]]
_NOT_WORDS = ("file_redirect", "herestring_redirect", "heredoc_redirect", "variable_assignment")
_QUOTES = ("string",)
_UNQUOTING = ("command_substitution", "process_substitution", "program")
_COMPARES_NUMBERS = re.compile(r"-(?:eq|ne|lt|le|gt|ge)$")
_OFFSET = re.compile(r"^\$\{[^:]*:(?![-=?+])(.*)\}$", re.DOTALL)
_INDIRECT = re.compile(r"^\$\{!(\w+)(?!\[[@*]\]\}|[*@]\})")
_NAMES_A_VARIABLE = (("printf", "-v"), ("test", "-v"), ("test", "-R"))
_RUNS_IN_FIND = ("-exec", "-execdir", "-ok", "-okdir")
_ENUM = "give the parameter an `enum`, or write the word yourself"


def find_beginnings(script: str, holes: Mapping[int, Hole]) -> Beginnings:
    """What the value of a hole, by its number, may not begin with. Raises TemplateProblem where it would be code."""
    if not any(hole.dirty for hole in holes.values()):
        return {}
    return _Inspector(script, holes).inspect()


class _Inspector:
    def __init__(self, script: str, holes: Mapping[int, Hole]) -> None:
        import tree_sitter
        import tree_sitter_bash

        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
        self._root: Node = parser.parse(masked(script.encode())).root_node
        self._script, self._holes = script, holes
        self._beginnings: Beginnings = {}

    def inspect(self) -> Beginnings:
        if self._root.has_error:
            wrong = next(node for node in walk(self._root) if node.type == "ERROR" or node.is_missing)
            raise self._problem(wrong, f"is not understood as bash: {text_of(wrong)[:40]!r}", "spell it more plainly")
        self._require_quoted()
        self._flow = Flow(self._root, self._holes)
        for node in walk(self._root):
            if (check := self._CHECKS.get(node.type)) is not None:
                check(self, node)
        return self._beginnings

    def _problem(self, node: Node, text: str, fix: str = "") -> TemplateProblem:
        return TemplateProblem(text, line=node.start_point.row + 1, fix=fix)

    def _refuse(self, node: Node, dirt: str, why: str, fix: str = "") -> None:
        if dirt:
            raise self._problem(node, f"{dirt} {why}", fix)

    def _require_quoted(self) -> None:
        """Two readers must agree: each reference is an expansion inside double quotes."""
        seen = 0
        for node in walk(self._root):
            if node.type == "expansion" and is_reference(node):
                around = node.parent
                while around.type not in _QUOTES:
                    if around.type in _UNQUOTING:
                        raise self._problem(node, "the quoting around a value is not understood", "quote it plainly")
                    around = around.parent
                seen += 1
        if seen != len(REFERENCE.findall(self._script)):
            raise self._problem(self._root, "the quoting around a value is not understood", "quote it plainly")

    def _command(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is None:
            return
        words = [name, *(each for each in node.children_by_field_name("argument") if each.type not in _NOT_WORDS)]
        for word in words[1:]:
            self._refuse(word, self._split(word), "is split into words", 'put it in double quotes: "$x"')
        self._run(words)

    def _split(self, word: Node) -> str:
        """A variable of the caller's that stands unquoted."""
        parts = word.children if word.type == "concatenation" else (word,)
        for node in parts:
            if node.type in ("simple_expansion", "expansion") and not is_reference(node):
                return self._flow.dirt(node)
        return ""

    def _run(self, words: Sequence[Node], *, pasted: bool = False) -> None:
        """A program with its arguments. `pasted`: `{}` stands for words of another program's choice."""
        self._refuse(words[0], self._flow.dirt(words[0]), "would choose the program that runs", _ENUM)
        spelled = literal(words[0])
        if spelled is None:
            return
        name, arguments = programs.plain_name(spelled), words[1:]
        if name in programs.WRAPPERS:
            self._wrapper(name, arguments)
            return
        if name == "find":
            arguments = self._find(arguments)
        if name in programs.SHELLS:
            self._shell(arguments, pasted=pasted)
            return
        if name in programs.EVALUATING_BUILTINS or name in programs.REPARSING:
            self._evaluating(name, arguments)
        elif name in programs.CODE_OPTIONS:
            self._interpreter(name, arguments)
        elif name in programs.CODE_OPERAND:
            self._code_operand(name, arguments)
        self._restrict(name, arguments)

    def _wrapper(self, name: str, arguments: Sequence[Node]) -> None:
        wrapper, skip, operands = programs.WRAPPERS[name], False, programs.WRAPPERS[name].operands
        for index, word in enumerate(arguments):
            spelled, dirt = literal(word), self._flow.dirt(word)
            plain = re.sub(r"['\"]", "", text_of(word))
            if skip:
                skip = False
            elif plain.startswith("-"):
                self._refuse(word, dirt, f"is part of an option of {name}, which runs programs", _ENUM)
                skip = spelled in wrapper.valued
            elif wrapper.assigns and re.match(r"\w+=", plain):
                self._telling(plain.partition("=")[0], word, dirt)
            elif operands:
                operands -= 1
                self._begin(word, "-")
            else:
                self._run(arguments[index:], pasted=name == "xargs")
                return

    def _find(self, arguments: Sequence[Node]) -> Sequence[Node]:
        """The arguments that are its own, not those of programs that it runs."""
        spelled = [literal(word) for word in arguments]
        index = next((at for at, word in enumerate(spelled) if word in _RUNS_IN_FIND), None)
        if index is None:
            return arguments
        end = next((at for at in range(index, len(spelled)) if spelled[at] in (";", "+")), len(spelled))
        inner = arguments[index + 1 : end]
        for word in inner:
            self._begin(word, ";")
        if inner:
            self._run(inner, pasted=True)
        return [*arguments[: index + 1], *self._find(arguments[end:][1:])]

    def _shell(self, arguments: Sequence[Node], *, pasted: bool) -> None:
        """`sh -c 'code' name value…` is fine: behind the code stand data."""
        fix = "pass it behind the code: bash -c '… \"$1\"' _ {{…}}"
        for index, word in enumerate(arguments):
            spelled = literal(word) or ""
            self._refuse(word, self._flow.dirt(word), "would be run by a shell as code", fix)
            if re.fullmatch(r"-\w*c", spelled):
                for code in arguments[index + 1 : index + 2]:
                    self._refuse(code, self._flow.dirt(code), "would be run by a shell as code", fix)
                    if pasted and "{}" in text_of(code):
                        raise self._problem(
                            code, "{} is pasted into code that a shell runs", fix.replace("{{…}}", "{}")
                        )
                return
            if spelled and not spelled.startswith(("-", "+")):
                return

    def _evaluating(self, name: str, arguments: Sequence[Node]) -> None:
        if name == "set" and arguments and literal(arguments[0]) == "--":
            return
        for word in arguments:
            dirt = self._flow.mentions(text_of(word)) if name == "let" else self._naming(word)
            self._refuse(word, dirt, f"would be evaluated by {name!r}", "do without it, or use an `enum`")

    def _interpreter(self, name: str, arguments: Sequence[Node]) -> None:
        letters, found_code = "".join(programs.CODE_OPTIONS[name]), False
        why, fix = f"would be code for {name}", "pass it as an argument behind the code, and read it there"
        for index, word in enumerate(arguments):
            spelled, dirt = literal(word), self._flow.dirt(word)
            if (spelled or text_of(word)).lstrip("'\"").startswith("-") and spelled != "-":
                self._refuse(word, dirt, why, fix)
                if re.fullmatch(rf"-\w*[{letters}]|--(?:eval|print|execute|command|expression)", spelled or ""):
                    found_code = True
                    for code in arguments[index + 1 : index + 2]:
                        self._refuse(code, self._flow.dirt(code), why, fix)
            else:
                if not found_code:
                    self._refuse(word, dirt, f"would choose the program that {name} runs", _ENUM)
                return

    def _code_operand(self, name: str, arguments: Sequence[Node]) -> None:
        why = f"would be code for {name}"
        fix = "awk -v x={{…}} '… x …', or ENVIRON" if "awk" in name else "use another tool for it, or an `enum`"
        follows, explicit = "", False
        for word in arguments:
            spelled, dirt = literal(word), self._flow.dirt(word)
            plain = re.sub(r"['\"]", "", text_of(word))
            if follows == "value":
                follows = ""
            elif follows == "code" or not plain.startswith("-"):
                if follows or not explicit:
                    self._refuse(word, dirt, why, fix)
                    explicit = True
                follows = ""
            elif spelled in programs.CODE_OPERAND[name]:
                follows = "value"
            elif not ("awk" in name and plain.startswith(("-v", "-F"))):
                self._refuse(word, dirt, why, fix)
                if re.fullmatch(r"-\w*[ef]|--(?:expression|file|source)", spelled or ""):
                    follows, explicit = "code", True

    def _restrict(self, name: str, arguments: Sequence[Node]) -> None:
        """Values at the beginning of a word that could turn the program against its author."""
        valued = programs.OPTIONS_RUN.get(name)
        before, ended = "", False
        for index, word in enumerate(arguments):
            self._begin(word, *programs.FORBIDDEN_BEGINNINGS.get(name, ()))
            if (name, before) in _NAMES_A_VARIABLE:
                self._refuse(word, self._naming(word), "would name a variable", "write the name yourself")
            if name == "test" and self._leading_variable(word):
                following = arguments[index + 1 : index + 2]
                dirt = next((found for each in following if (found := self._flow.dirt(each))), "")
                self._refuse(word, dirt, "would be what a test of the caller's choice is about", "use [[ … ]]")
            if name == "printf" and index == 0:
                self._begin(word, "-")
                self._refuse(word, self._leading_variable(word), "would be an option of printf", "printf '%s' \"$x\"")
            if valued is not None and before not in valued and (not ended or name == "find"):
                self._begin(word, "-")
                fix = 'put -- before it, or write ./"$x"'
                self._refuse(
                    word, self._leading_variable(word), f"could be an option with which {name} runs programs", fix
                )
            before = literal(word) or ""
            ended = ended or before == "--"

    def _begin(self, word: Node, *beginnings: str) -> None:
        """The hole that a word begins with may not begin with any of these."""
        found = REFERENCE.match(re.sub(r"^(?:''|\"\")*[\"']?", "", text_of(word)))
        if found and self._holes[int(found[1])].dirty:
            self._beginnings.setdefault(self._holes[int(found[1])].number, set()).update(beginnings)

    def _leading_variable(self, word: Node) -> str:
        plain = text_of(word).lstrip("'\"")
        if not plain.startswith("$") or REFERENCE.match(plain):
            return ""
        first = next((each for each in walk(word) if each.type in ("simple_expansion", "expansion")), None)
        return "" if first is None else self._flow.dirt(first)

    def _telling(self, name: str, node: Node, dirt: str) -> None:
        if any(fnmatchcase(name, pattern) for pattern in programs.TELLING_VARIABLES):
            self._refuse(node, dirt, f"would set {name}, which chooses what runs", "set it to a fixed value")

    def _assignment(self, node: Node) -> None:
        target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        name = text_of(target).partition("[")[0]
        if value is None:
            return
        dirt = self._flow.dirt(value)
        self._telling(name, node, dirt)
        if name in self._flow.integers:
            self._refuse(node, dirt, f"would be evaluated: {name} is an integer variable", "do not declare it -i")
        if value.type == "array" and name not in self._flow.maps:
            for element in value.children:
                if text_of(element).startswith("["):
                    self._refuse(element, self._flow.dirt(element), "stands in a subscript", "declare the array -A")

    def _naming(self, word: Node) -> str:
        """What of the caller's is in the name of a variable. Subscripts are evaluated even where they are quoted."""
        return self._flow.dirt(word) or self._flow.mentions("".join(re.findall(r"\[.*", text_of(word))))

    def _declaration(self, node: Node) -> None:
        flags = "".join(text_of(each) for each in node.children if text_of(each).startswith("-"))
        for each in node.children:
            dirt = self._flow.dirt(each)
            if each.type != "variable_assignment":
                self._refuse(each, dirt, "would name a variable", "write the name yourself")
            elif set(flags) & {"i", "n"}:
                dirt = self._flow.mentions(text_of(each).partition("=")[2])
                self._refuse(each, dirt, "would be evaluated by the declaration", "declare it without -i and -n")

    def _unset(self, node: Node) -> None:
        self._refuse(node, self._naming(node), "would name a variable", "write the name yourself")

    def _arithmetic(self, node: Node) -> None:
        text = text_of(node)
        if node.type == "compound_statement" and not text.startswith("(("):
            return
        if node.type == "c_style_for_statement":
            text = text.partition("do")[0]
        fix = 'turn it into a number first: printf -v n %d "$x"'
        self._refuse(node, self._flow.mentions(text), "is evaluated by arithmetic", fix)

    def _subscript(self, node: Node) -> None:
        name, _, index = text_of(node).partition("[")
        if name != ARRAY and name not in self._flow.maps:
            fix = 'turn it into a number first: printf -v n %d "$x"'
            self._refuse(node, self._flow.mentions(index), "is evaluated as a subscript", fix)

    def _test(self, node: Node) -> None:
        double = text_of(node).startswith("[[")
        for part in walk(node):
            operators = [text_of(each) for each in part.children if each.type == "test_operator"]
            if double and any(_COMPARES_NUMBERS.match(each) for each in operators):
                fix = "compare with [ … ], which takes numbers only"
                self._refuse(part, self._flow.mentions(text_of(part)), "is evaluated by [[ … ]]", fix)
            if any(each in ("-v", "-R") for each in operators):
                self._refuse(part, self._flow.mentions(text_of(part)), "would name a variable", 'use -n "$x"')
            if not double and part.type in ("string", "concatenation"):
                self._begin(part, *programs.FORBIDDEN_BEGINNINGS["["])

    def _expansion(self, node: Node) -> None:
        text = text_of(node).strip()
        if is_reference(node):
            return
        if offset := _OFFSET.match(text):
            self._refuse(node, self._flow.mentions(offset[1]), "is evaluated as an offset", "use a fixed number")
        if (indirect := _INDIRECT.match(text)) and indirect[1] in self._flow.names:
            raise self._problem(node, f"${indirect[1]} would name a variable", "write the name yourself")
        if text.endswith("@P}"):
            self._refuse(node, self._flow.dirt(node), "would be expanded as a prompt", "leave @P out")

    def _pipeline(self, node: Node) -> None:
        stages = [each for each in node.children if each.is_named]
        for index, stage in enumerate(stages):
            dirt = next((found for each in stages[:index] if (found := self._flow.dirt(each))), "")
            if dirt:
                self._require_no_code_from_input(stage, dirt)

    def _redirected(self, node: Node) -> None:
        """An input of the program, or of the programs, that it is attached to; heredocs look like `< <(…)` here."""
        if text_of(node).lstrip("0123456789").startswith("<"):
            dirt = self._flow.dirt(node)
            if dirt:
                self._require_no_code_from_input(node.parent, dirt)

    def _require_no_code_from_input(self, node: Node, dirt: str) -> None:
        for command in walk(node):
            if command.type != "command" or (name := command.child_by_field_name("name")) is None:
                continue
            words = [literal(word) for word in (name, *command.children_by_field_name("argument"))]
            if (program := reads_code(words)) is not None:
                fix = "give the code as a fixed text, and the value as an argument"
                self._refuse(command, dirt, f"would reach {program} as code, through its input", fix)

    _CHECKS: ClassVar[Mapping[str, Callable[[Any, Node], None]]] = {
        "command": _command,
        "variable_assignment": _assignment,
        "declaration_command": _declaration,
        "unset_command": _unset,
        "arithmetic_expansion": _arithmetic,
        "compound_statement": _arithmetic,
        "c_style_for_statement": _arithmetic,
        "subscript": _subscript,
        "test_command": _test,
        "expansion": _expansion,
        "pipeline": _pipeline,
        "file_redirect": _redirected,
        "herestring_redirect": _redirected,
    }


def reads_code(words: Sequence[str | None]) -> str | None:
    """The program among these words that would take its input for code, or make programs' arguments of it."""
    spelled = [word or "?" for word in words]
    while spelled and (name := programs.plain_name(spelled[0])) in programs.WRAPPERS:
        inner = _wrapped(name, spelled[1:])
        if name == "xargs" and inner and "--" not in inner and programs.plain_name(inner[0]) in programs.OPTIONS_RUN:
            return f"xargs {inner[0]}"
        spelled = inner
    if not spelled or (name := programs.plain_name(spelled[0])) not in programs.CODE_INPUT:
        return None
    arguments = spelled[1:]
    operands = [word for word in arguments if not word.startswith("-")]
    if name in programs.SHELLS or name in programs.CODE_OPTIONS:
        letters = "c" if name in programs.SHELLS else "".join(programs.CODE_OPTIONS[name])
        given = any(re.fullmatch(rf"-\w*[{letters}]|--eval|--execute", word) for word in arguments)
        return None if given or (operands and "-s" not in arguments) else name
    if name == "psql" and any(word.startswith(("-c", "-f", "--command", "--file")) for word in arguments):
        return None
    return None if name == "sqlite3" and len(operands) > 1 else name


def _wrapped(name: str, arguments: Sequence[str]) -> list[str]:
    wrapper, position = programs.WRAPPERS[name], 0
    operands = wrapper.operands
    while position < len(arguments):
        word = arguments[position]
        if word.startswith("-"):
            position += 1 + (word in wrapper.valued)
        elif wrapper.assigns and re.match(r"\w+=", word):
            position += 1
        elif operands:
            operands -= 1
            position += 1
        else:
            break
    return list(arguments[position:])
