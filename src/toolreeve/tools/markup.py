"""HTML tokenizer: tags and text as a browser's tokenizer sees them.

No tree is ever built: thirty kilobytes of mis-nested tags make a conforming parser build a gigabyte. Each character is
looked at a bounded number of times, and an unclosed construct swallows the rest, as in browsers.
"""

import html
import re
from collections.abc import Iterator

# (name, attributes, text): an opening tag "p", a closing tag "/p", or text under the name "".
Token = tuple[str, str, str]

_MARKUP = re.compile(r"<(?=[a-zA-Z/!?])")
_TAG = re.compile(r"""<(/?[a-zA-Z][^\s/>\x00]*+)((?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|(?!["'])))*+)>""")
_COMMENT_END = re.compile(r"--!?>")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=\x00]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]++)))?+""")
_OVERLONG_REFERENCE = re.compile(r"&#(?:0*+[0-9]{8,}+|[xX]0*+[0-9a-fA-F]{7,}+);?")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title")
}
_ESCAPABLE = frozenset({"textarea", "title"})
_SHOWN_RAW = frozenset({"textarea", "title", "xmp"})


def tokens(source: str) -> Iterator[Token]:
    """Names are in lower case; scripts and styles are left out; character references are resolved."""
    place = 0
    end = len(source)
    while place < end:
        found = _MARKUP.search(source, place)
        start = found.start() if found else end
        if start > place:
            yield "", "", unescape(source[place:start])
        if found is None:
            return
        if tag := _TAG.match(source, start):
            name = tag[1].lower()
            yield name, tag[2], ""
            place = tag.end()
            if name in _RAW:
                content, place = _raw_text(source, place, name)
                if name in _SHOWN_RAW:
                    yield "", "", unescape(content) if name in _ESCAPABLE else content
        else:
            place = _skip(source, start)


def _raw_text(source: str, place: int, name: str) -> tuple[str, int]:
    found = _RAW[name].search(source, place)
    stop = found.start() if found else len(source)
    return source[place:stop], stop


def _skip(source: str, start: int) -> int:
    """The position after a comment, a declaration, or a tag that never ends."""
    if source.startswith("<!--", start):
        if source.startswith((">", "->"), start + 4):
            return source.index(">", start) + 1
        found = _COMMENT_END.search(source, start + 4)
        return found.end() if found else len(source)
    named = source[start + 1 : start + 2].isalpha() or (
        source.startswith("</", start) and source[start + 2 : start + 3].isalpha()
    )
    stop = -1 if named else source.find(">", start)
    return stop + 1 if stop >= 0 else len(source)


def attributes(text: str) -> dict[str, str]:
    """Of several attributes with one name the first counts. Names are in lower case."""
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(text):
        found.setdefault(name.lower(), unescape(double or single or bare))
    return found


def unescape(text: str) -> str:
    if "&" not in text:
        return text
    # Python refuses to parse a number of thousands of digits; no character has more than seven.
    return html.unescape(_OVERLONG_REFERENCE.sub("�", text))
