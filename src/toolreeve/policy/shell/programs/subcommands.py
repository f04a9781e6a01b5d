"""Subcommands: the words of a command that name what runs.

`git commit`, `npm run test`, `python -m pytest`: the words after them are arguments of the same thing.
"""

from collections.abc import Sequence

from toolreeve.policy.shell.programs.spec import Program, program

_RUN_OTHERS = frozenset("command env flock shell watch wrapper xargs".split())
"""Handlers of programs that run the command that follows."""


def runs_others(words: Sequence[str]) -> bool:
    """Whether the words name a program, or a subcommand, that runs whatever command follows."""
    spec, count = find_subcommand(words[0], words)
    return spec is not None and spec.handler in _RUN_OTHERS and count in (0, len(words))


def find_subcommand(name: str, words: Sequence[str]) -> tuple[Program | None, int]:
    """The specification that the words lead to, and how many of them name it; 0 if they do not name it plainly.

    `name` is the program, `words` are literal and begin with it, however it is spelled.
    """
    spec = program(name)
    if spec is None:
        return None, 1
    count = 1
    while count < len(words) and "sub" in spec.data and spec.handler != "python":
        inner = None if words[count].startswith("-") else spec.sub(words[count])
        if inner is None:
            return spec, 0
        spec = inner
        count += 1
    return spec, count + _count_named(spec, words[count:]) if _is_plain(spec, words[count:]) else 0


def count_script(name: str, words: Sequence[str]) -> int:
    """How many words lead to a script that is named relative to the directory, and name it; 0 if none is."""
    spec, count = find_subcommand(name, words)
    if spec is None or not count or words[count - 1].startswith("/"):
        return 0
    names = spec.operands[:1] == ("script",) or (spec.handler == "python" and words[count - 2] != "-m")
    return count if names else 0


def _is_plain(spec: Program, rest: Sequence[str]) -> bool:
    """Whether what runs is named right after the subcommand, where it has to be named at all."""
    if spec.handler == "python":
        return bool(rest) and (not rest[0].startswith("-") or (rest[0] == "-m" and len(rest) > 1))
    if spec.operands[:1] == ("script",):
        return bool(rest) and not rest[0].startswith("-")
    return not (spec.names and rest and rest[0].startswith("-"))


def _count_named(spec: Program, rest: Sequence[str]) -> int:
    if spec.handler == "python":
        return 2 if rest[0] == "-m" else 1
    return 1 if rest and (spec.names or spec.operands[:1] == ("script",)) else 0
