"""Variables that a command fills, or takes away, by their names."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolreeve.scripted.words import Node, Word, text_of

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NUMBER_FORMATS = frozenset({"%d", "%i", "%u", "%x", "%o"})
_VALUED = {"read": "dinNptu", "mapfile": "dnOsuCc", "readarray": "dnOsuCc", "getopts": ""}
"""Letters of options that take a word which is not the name of a variable."""
Words = Sequence[Word]
Spell = Callable[[Word], list[str]]


@dataclass(frozen=True, slots=True)
class Filled:
    """`unclear`: a variable whose name is not fixed is among them."""

    names: frozenset[str] = frozenset()
    unclear: bool = False


def filled_by(words: Words, spell: Spell) -> Filled:
    """Variables that a command sets from its input or arguments. `spell` gives all texts of a word, or none."""
    while words and set(spell(words[0])) & {"command", "builtin"}:
        words = words[1:]
    commands = set(spell(words[0])) if words else set()
    if command := commands & _VALUED.keys():
        name = min(command)
        operands = _operands(words[1:], _VALUED[name])
        return _named(operands[1:2] if name == "getopts" else operands, spell)
    if "printf" in commands:
        return _printed(words[1:], spell)
    return Filled()


def _printed(words: Words, spell: Spell) -> Filled:
    """`printf -v name`; `printf -v n %d` always produces a number."""
    if len(words) > 2 and words[0].text == "-v":
        return Filled() if words[2].text in _NUMBER_FORMATS else _named(words[1:2], spell)
    if len(words) > 1 and words[0].start.startswith("-v") and words[0].text != "-v":
        glued = Word(words[0].node, (words[0].start[2:], *words[0].parts[1:]))
        return Filled() if words[1].text in _NUMBER_FORMATS else _named([glued], spell)
    return Filled()


def _operands(words: Words, valued: str) -> list[Word]:
    """The words that are no options, nor belong to one. `read -a name` gives the name of an array."""
    found: list[Word] = []
    taken = False
    ended = False
    for word in words:
        start = word.text or word.start
        option = re.fullmatch(r"-[A-Za-z]+", start) if not ended and not taken else None
        if not taken and not option and not (start.startswith("-") and not ended):
            found.append(word)
        ended = ended or start == "--"
        first = next((at for at, letter in enumerate(start[1:]) if letter in valued), None) if option else None
        taken = first is not None and first == len(start) - 2
    return found


def _named(words: Words, spell: Spell) -> Filled:
    names: set[str] = set()
    unclear = False
    for word in words:
        spelled = spell(word)
        found = [_IDENTIFIER.match(text) for text in spelled]
        names |= {match[0] for match in found if match}
        unclear = unclear or not found or not all(found)
    return Filled(frozenset(names), unclear)


def may_unset(node: Node, name: str) -> bool:
    """Whether a command unsets it: without an option, `unset` takes functions too."""
    if node.type not in ("unset_command", "command") or "unset" not in text_of(node):
        return False
    return "$" in text_of(node) or name in text_of(node)


def may_fill(node: Node, name: str) -> bool:
    """Whether a command gets the name of a variable, quoted code mentions it, or a loop sets it."""
    if node.type == "word":
        return re.fullmatch(rf"(?:-v)?{name}(?:\[.*|=.*)?", text_of(node), re.DOTALL) is not None
    if node.type in ("raw_string", "string_content", "ansi_c_string"):
        return re.search(rf"\b{name}\b", text_of(node)) is not None
    if node.type == "expansion":
        return re.match(rf"\$\{{{name}:?=", text_of(node)) is not None
    return node.type == "for_statement" and text_of(node.child_by_field_name("variable")) == name
