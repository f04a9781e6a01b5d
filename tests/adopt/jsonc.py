"""Documents as people write them: JSON with comments, blanks and commas in every place that allows them."""

import itertools
import json
import re
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

MARK = re.compile(r"\bc\d+c\b")
"""What every comment of such a document holds, each its own."""


@dataclass(frozen=True, slots=True)
class Doc:
    text: str
    section: tuple[int, int]
    """From where to where in the text the servers stand, brackets included."""

    @property
    def marks(self) -> list[str]:
        return sorted(MARK.findall(self.text))


class _Writer:
    def __init__(self, draw: Any, *, comments: bool) -> None:
        self._draw, self._comments = draw, comments
        self._numbers = itertools.count()

    def blank(self) -> str:
        kinds = ["", "", " ", "\n", "\n  ", "\n\n\t"]
        kinds += ["//", "//", "/*", "/**"] if self._comments else []
        return "".join(self._one(kind) for kind in self._draw(st.lists(st.sampled_from(kinds), max_size=3)))

    def _one(self, kind: str) -> str:
        mark = f"c{next(self._numbers)}c"
        match kind:
            case "//":
                return f'// {mark} "}},{{ */ é\n'
            case "/*":
                return f'/* {mark} // " */'
            case "/**":
                return f"/*\n * {mark}\n */"
        return kind

    def object(self, members: list[tuple[str, str]]) -> str:
        parts = [f"{self.blank()}{json.dumps(key)}{self.blank()}:{self.blank()}{value}" for key, value in members]
        trailing = parts and self._comments and self._draw(st.booleans())
        text = "".join(
            f"{part}{self.blank()}{',' if trailing or index < len(parts) - 1 else ''}"
            for index, part in enumerate(parts)
        )
        return "{" + text + self.blank() + "}"

    def server(self, command: str) -> str:
        more = self._draw(st.booleans())
        return self.object([("command", json.dumps(command)), *([("args", '["/*", "//"]')] if more else [])])


@st.composite
def documents(draw: Any, *, comments: bool = True) -> Doc:
    """A document with servers: those that can be taken over are called a, b, c; those that cannot, x, y, z."""
    writer = _Writer(draw, comments=comments)
    names = draw(st.lists(st.sampled_from("abcxyz"), unique=True, max_size=5))
    servers = writer.object([(name, writer.server(f"/{name}" if name < "d" else f"./{name}")) for name in names])
    before, behind = (draw(st.lists(st.sampled_from(keys), unique=True, max_size=2)) for keys in ("kl", "mn"))
    members = [*((key, '"//"') for key in before), ("mcpServers", "@"), *((key, "[1, 2]") for key in behind)]
    text = draw(st.sampled_from(["", "\ufeff"])) + writer.blank() + writer.object(members) + writer.blank()
    start = text.index("@")
    text = text.replace("@", servers)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
        start = text.index(servers := servers.replace("\n", "\r\n"))
    return Doc(text, (start, start + len(servers)))
