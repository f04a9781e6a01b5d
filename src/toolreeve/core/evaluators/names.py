"""Names of programs, and lists of words."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def plain_name(program: str) -> str:
    """`/usr/bin/python3.11` is python."""
    name = program.rsplit("/", 1)[-1]
    if name.startswith(("python", "pypy")) and "-config" not in name:
        return "python"
    for stem in ("perl", "ruby", "lua", "php", "gcc", "g++", "clang", "tclsh"):
        if name.startswith(stem) and name[len(stem) :].lstrip("-").replace(".", "").isdigit():
            return stem
    return name
