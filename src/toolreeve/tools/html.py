"""HTML as plain text: blocks on lines, `text (url)`, bullets, tables.

Linear in the size of the page and bounded in its output, however the tags are nested.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from toolreeve.core.urls import join_url
from toolreeve.tools.markup import Token, attributes, tokens

MAX_INPUT = 8 * 1024 * 1024
MAX_INDENT = 8
MAX_PARTS = 8192

_SPACES = re.compile(r"[ \t\r\n\f]+")
_PARAGRAPHS = frozenset(
    {"p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "dl", "table", "pre", "figure", "address"}
    | {"article", "section", "aside", "main", "header", "footer", "nav", "form", "fieldset", "details"}
)
_LINES = frozenset(
    {"div", "li", "tr", "dt", "dd", "body", "html", "option", "center", "summary", "figcaption", "legend", "caption"}
    | {"hr", "optgroup", "dialog"}
)
_HIDDEN = frozenset({"title", "template", "datalist"})
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_STYLE_NOISE = re.compile(r"/\*[^*]*\*/|\s")
_INVISIBLE = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|mso-hide:all|opacity:0*(?:\.0+)?(?:[;!]|$)|"
    r"(?:font-size|max-height|max-width):0*(?:\.0+)?(?:px|pt|em|rem|%)?(?:[;!]|$)"
)
_IGNORED_LINKS = ("#", "javascript:", "data:", "vbscript:")


class TextWriter:
    """Takes tags and text one after the other; `finish` returns the plain text."""

    def __init__(self, base_url: str = "") -> None:
        self.base_url = base_url
        self._parts: list[str] = []
        self._settled: list[str] = []
        self._newlines = 0
        self._space = False
        self._empty = True
        self._fresh = False
        self._lists: list[int | None] = []
        self._pre = 0
        self._hidden = 0
        self._cells = 0
        self._link: tuple[str, int] | None = None

    def text(self, text: str) -> None:
        if self._hidden:
            return
        if self._pre:
            self._write(text)
            return
        words = _SPACES.sub(" ", text)
        if words == " ":
            self._space = True
            return
        self._space = self._space or words.startswith(" ")
        self._write(words.strip(" "))
        self._space = words.endswith(" ")

    def open(self, name: str, given: str) -> None:
        if name in _HIDDEN:
            self._hidden += 1
        elif name in _PARAGRAPHS:
            self._open_paragraph(name, given)
        elif name in _LINES:
            self._open_line(name)
        elif name == "br":
            self.br()
        elif name in ("td", "th"):
            self.cell()
        elif name == "a":
            self._open_link(given)

    def close(self, name: str) -> None:
        if name in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        elif name in _PARAGRAPHS:
            self._close_paragraph(name)
        elif name in _LINES:
            self.line(1)
        elif name == "a":
            self._close_link()

    def finish(self) -> str:
        self._settle()
        return "".join(self._settled).strip("\n")

    def line(self, newlines: int) -> None:
        """Require at least so many line breaks before the next text; none before the first, or right after a bullet."""
        if not self._fresh:
            self._newlines = max(self._newlines, newlines)
        self._space = False

    def br(self) -> None:
        self.line(min(self._newlines + 1, 2))

    def cell(self) -> None:
        """A tab between cells. Line breaks inside the last cell do not separate it from this one."""
        self._cells += 1
        if self._cells == 1:
            self._break()
        else:
            self._newlines = 0
            self._parts.append("\t")
        self._space = False
        self._fresh = True

    def bullet(self) -> None:
        self._fresh = False
        self.line(1)
        depth = min(len(self._lists), MAX_INDENT)
        count = self._lists[-1] if self._lists else None
        if count is not None:
            self._lists[-1] = count + 1
        mark = "- " if count is None else f"{count}. "
        self._write("  " * max(0, depth - 1) + mark)
        self._fresh = True

    def link(self, url: str, begun: int) -> None:
        written = "".join(self._parts[begun:]).strip()
        if written and written != url and f"mailto:{written}" != url:
            self._parts.append(f" ({url})")

    def _open_paragraph(self, name: str, given: str) -> None:
        self.line(1 if self._lists and name in ("ul", "ol", "p") else 2)
        if name in ("ul", "ol"):
            self._lists.append(_start(given) if name == "ol" else None)
        elif name == "pre":
            self._pre += 1

    def _close_paragraph(self, name: str) -> None:
        if name in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif name == "pre":
            self._pre = max(0, self._pre - 1)
        self.line(1 if self._lists else 2)

    def _open_line(self, name: str) -> None:
        if name == "li":
            self.bullet()
            return
        if name == "tr":
            self._cells = 0
            self._fresh = False
        self.line(1)

    def _open_link(self, given: str) -> None:
        self._close_link()
        url = attributes(given).get("href", "").strip()
        if url and not url.lower().startswith(_IGNORED_LINKS):
            self._link = (join_url(self.base_url, url) if self.base_url else url, len(self._parts))

    def _close_link(self) -> None:
        if self._link is not None:
            url, begun = self._link
            self._link = None
            self.link(url, begun)

    def _write(self, text: str) -> None:
        if self._hidden or not text:
            return
        self._break()
        self._parts.append(text)
        self._empty = self._fresh = False
        if len(self._parts) > MAX_PARTS:
            self._settle()

    def _settle(self) -> None:
        """Join what is written so far: millions of small parts would cost many times the memory of their text."""
        self._close_link()
        self._settled.append("".join(self._parts))
        self._parts.clear()

    def _break(self) -> None:
        """Write the pending line breaks and spaces."""
        if self._newlines and not self._empty:
            self._parts.append("\n" * self._newlines)
        elif self._space and not self._empty and not self._fresh:
            self._parts.append(" ")
        self._newlines = 0
        self._space = False


def _start(given: str) -> int:
    text = attributes(given).get("start", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def html_to_text(source: str, base_url: str = "", *, visible_only: bool = False) -> str:
    """`visible_only` leaves out what a reader would not see: elements that are hidden, of no size or transparent."""
    return render(source, TextWriter(base_url), visible_only=visible_only)


def render(source: str, writer: TextWriter, *, visible_only: bool = False) -> str:
    parts = tokens(source[:MAX_INPUT])
    return render_tokens(visible_tokens(parts) if visible_only else parts, writer)


def render_tokens(parts: Iterable[Token], writer: TextWriter) -> str:
    for name, given, text in parts:
        if not name:
            writer.text(text)
        elif name[0] == "/":
            writer.close(name[1:])
        else:
            writer.open(name, given)
    return writer.finish()


def visible_tokens(parts: Iterable[Token]) -> Iterator[Token]:
    """Without hidden elements: from the tag that hides to the one that closes it; an unclosed one hides the rest."""
    hidden = ""
    depth = 0
    for name, given, text in parts:
        if not hidden:
            if name and name[0] != "/" and name not in _VOID and _is_hidden(given):
                hidden = name
                depth = 1
            else:
                yield name, given, text
        elif name == hidden:
            depth += 1
        elif name == f"/{hidden}":
            depth -= 1
            hidden = hidden if depth else ""


def _is_hidden(given: str) -> bool:
    if "hidden" not in given.lower() and "style" not in given.lower():
        return False
    found = attributes(given)
    return "hidden" in found or bool(_INVISIBLE.search(_STYLE_NOISE.sub("", found.get("style", "").lower())))


def title_of(source: str) -> str:
    """The text of the first title, or an empty string."""
    inside = False
    for name, _, text in tokens(source[:65536]):
        if inside:
            return _SPACES.sub(" ", text).strip() if not name else ""
        inside = name == "title"
    return ""


def links_of(source: str, base_url: str = "", limit: int = 100_000) -> Sequence[str]:
    """The links of the page in order, made absolute; only those that can be fetched or mailed to, at most `limit`."""
    links: list[str] = []
    base = base_url
    has_base = False
    for name, given, _ in tokens(source[:MAX_INPUT]):
        if name not in ("a", "area", "base"):
            continue
        href = attributes(given).get("href", "").strip()
        if not href:
            continue
        if name == "base":
            base = base if has_base else join_url(base_url, href)
            has_base = True
        elif not href.lower().startswith(_IGNORED_LINKS):
            links.append(join_url(base, href) if base else href)
            if len(links) == limit:
                break
    return links
