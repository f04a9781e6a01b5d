"""Program names, word lists, and beginnings of words."""

import re
from collections.abc import Iterable

_SHAPES = {"host:": re.compile(r"[^/]*:"), "user@-": re.compile(r"[^/]*@-"), "helper::": re.compile(r"[\w+.-]+::")}
"""Beginnings that are not fixed text: a host, a host that is an option, a program that git would start."""

_GNU = frozenset(
    f"g{name}" for name in "chroot env find install nice nohup sort split stdbuf time timeout xargs".split()
)
"""GNU programs as macOS installs them."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def plain_name(program: str) -> str:
    """`/usr/bin/python3.11` is python, `gtimeout` is timeout."""
    name = program.rsplit("/", 1)[-1]
    if name in _GNU:
        return name[1:]
    if name.startswith(("python", "pypy")) and "-config" not in name:
        return "python"
    for stem in ("perl", "ruby", "lua", "php", "gcc", "g++", "clang", "tclsh"):
        if name.startswith(stem) and name[len(stem) :].lstrip("-").replace(".", "").isdigit():
            return stem
    return name


def find_beginning(text: str, beginnings: Iterable[str]) -> str:
    """The first of them that the text begins with, or nothing."""
    for each in beginnings:
        shape = _SHAPES.get(each)
        begins = text.startswith(each) if shape is None else shape.match(text) is not None
        if begins:
            return each
    return ""
