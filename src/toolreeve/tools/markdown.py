"""HTML as Markdown: headings, emphasis, code, links and tables."""

import re

from toolreeve.core.urls import join_url
from toolreeve.tools.html import TextWriter, render
from toolreeve.tools.markup import attributes

_EMPHASIS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "s": "~~", "del": "~~"}
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_SPECIAL = re.compile(r"([\\`*\[\]])")
_MAX_COLUMNS = 100


class MarkdownWriter(TextWriter):
    def __init__(self, base_url: str = "") -> None:
        super().__init__(base_url)
        self._header_due = False
        self._code = 0

    def text(self, text: str) -> None:
        super().text(text if self._pre or self._code else _escape(text))

    def open(self, name: str, given: str) -> None:
        super().open(name, given)
        if name in _HEADINGS:
            self._write(_HEADINGS[name])
            self._fresh = True
        elif name in _EMPHASIS and not self._pre:
            self._write(_EMPHASIS[name])
            self._fresh = True
            self._code += name == "code"
        elif name == "pre":
            self._write("```\n")
        elif name == "blockquote":
            self._write("> ")
            self._fresh = True
        elif name == "hr":
            self._write("---")
            self.line(2)
        elif name == "img":
            self._image(given)
        elif name == "table":
            self._header_due = True

    def close(self, name: str) -> None:
        if name in _EMPHASIS and not self._pre:
            self._parts.append(_EMPHASIS[name])
            self._code = max(0, self._code - (name == "code"))
        elif name == "pre" and self._pre:
            self._parts.append("\n```")
        elif name == "tr":
            self._close_row()
        super().close(name)

    def cell(self) -> None:
        self._cells += 1
        if self._cells == 1:
            self._break()
        self._newlines = 0
        self._parts.append("| " if self._cells == 1 else " | ")
        self._empty = False
        self._space = False
        self._fresh = True

    def link(self, url: str, begun: int) -> None:
        written = "".join(self._parts[begun:])
        lead = written[: len(written) - len(written.lstrip())]
        words = written.strip()
        if words:
            self._parts[begun:] = [f"{lead}[{words}]({_destination(url)})"]

    def _close_row(self) -> None:
        if not self._cells:
            return
        self._parts.append(" |")
        if self._header_due:
            self._header_due = False
            self._parts.append("\n|" + " --- |" * min(self._cells, _MAX_COLUMNS))
        self._cells = 0
        self._fresh = False

    def _image(self, given: str) -> None:
        found = attributes(given)
        alt = found.get("alt", "").strip()
        source = found.get("src", "").strip()
        if alt and source and not source.startswith("data:"):
            url = join_url(self.base_url, source) if self.base_url else source
            self._write(f"![{_escape(alt)}]({_destination(url)})")


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _destination(url: str) -> str:
    return url.replace(" ", "%20").replace("(", "%28").replace(")", "%29").replace("\n", "")


def html_to_markdown(source: str, base_url: str = "") -> str:
    return render(source, MarkdownWriter(base_url))
