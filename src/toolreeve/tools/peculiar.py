"""What do particular programs do with their arguments that no list of flags can say? One function a program.

Each answers why the words are refused, or None. They refuse what they do not understand.
"""

import posixpath
import re
from collections.abc import Callable, Mapping

STREAM = re.compile(r"-$|/dev/|/proc/")
"""Names that stand for the input of a program rather than for a file."""
_RECURSIVE = re.compile(r"-[a-zA-Z]*[rR]|--r(?:e|$)")
_EVERYTHING = re.compile(r"\.|/+|/[^/]+|\.\.(?:/.*)?")
_AWK_RUNS = re.compile(r"system|getline|\||@|/inet")


def _awk(words: tuple[str, ...]) -> str | None:
    if any(word.startswith("-") and word[:2] not in ("-F", "-v", "--") for word in words):
        return "only the options -F and -v are taken"
    if any(word.startswith("--") and word not in ("--", "--version") for word in words):
        return "only the options -F and -v are taken"
    running = [word for word in words if _AWK_RUNS.search(word)]
    return f"{running[0]!r} is refused: it could run another program" if running else None


_SED_OPTION = re.compile(r"-[nErsuz]+|-i(?:\.\w+)?|--(?:sandbox|quiet|silent|regexp-extended|null-data|posix)")
_SED_STEP = re.compile(
    r"\s*(?:(?:\d+|\$|/(?:\\.|[^/\\\n])*/)(?:,(?:\+?\d+|\$|/(?:\\.|[^/\\\n])*/))?)?\s*!?\s*"
    r"(?:[pdq=]|s(?P<mark>[/|#,:@%])(?:\\.|(?!(?P=mark))[^\\\n])*(?P=mark)(?:\\.|(?!(?P=mark))[^\\\n])*(?P=mark)[gpIiMm0-9]*)"
    r"\s*(?:;|$)"
)


def _sed(words: tuple[str, ...]) -> str | None:
    """Sed's own commands can run programs and write files; with --sandbox it refuses to by itself."""
    if "--sandbox" in words:
        return None
    scripts: list[str] = []
    at, operands = 0, []
    while at < len(words):
        word = words[at]
        if word in ("-e", "--expression"):
            scripts.append(words[at + 1] if at + 1 < len(words) else "")
            at += 1
        elif word.startswith("-") and word != "-":
            if not _SED_OPTION.fullmatch(word):
                return f"{word!r} is refused; add --sandbox, with which sed itself runs and writes nothing"
        else:
            operands.append(word)
        at += 1
    for script in scripts or operands[:1]:
        if not _only_plain_steps(script):
            return f"the script {script!r} is more than s, p, d, q and =; add --sandbox, with which sed runs nothing"
    return None


def _only_plain_steps(script: str) -> bool:
    at = 0
    while at < len(script):
        step = _SED_STEP.match(script, at)
        if step is None or step.end() == at:
            return False
        at = step.end()
    return True


def _rm(words: tuple[str, ...]) -> str | None:
    if any(len(word) > 4 and "--no-preserve-root".startswith(word) for word in words):
        return "'--no-preserve-root' is refused"
    if not any(map(_RECURSIVE.match, words)):
        return None
    for word in words:
        place = posixpath.normpath(word) if word else ""
        if not word.startswith("-") and _EVERYTHING.fullmatch(place):
            return f"{word!r} is refused: it would delete everything there"
        if posixpath.basename(place) == ".git":
            return f"{word!r} is refused: it would delete the history"
    return None


def _sqlite(words: tuple[str, ...]) -> str | None:
    if "-safe" in words or "--safe" in words or "-version" in words:
        return None
    operands = [word for word in words if not word.startswith("-")]
    if any(word.lstrip("-").partition("=")[0] in ("cmd", "init", "A") for word in words if word.startswith("-")):
        return "-cmd, -init and -A are refused; add -safe"
    if len(operands) < 2:
        return "it would read commands from its input; give the SQL as an argument, or add -safe"
    odd = re.compile(r"^\s*\.|load_extension|edit\s*\(|writefile", re.IGNORECASE | re.MULTILINE)
    return "its own commands and extensions are refused; add -safe" if any(map(odd.search, operands[1:])) else None


def _psql(words: tuple[str, ...]) -> str | None:
    commands = any(word in ("-c", "-l", "--list") or word.startswith("--command") for word in words)
    if not commands or any("\\" in word or "program" in word.lower() for word in words):
        return "only -c with SQL and no \\ commands is taken"
    return (
        "'-f' is refused: put the SQL into -c" if any(word[:2] == "-f" or word[:3] == "--f" for word in words) else None
    )


_GIT_LETTERS: Mapping[str, str] = {"rebase": "x", "grep": "O", "clone": "cu"}
"""Short options that name a program, or a setting that does; in other subcommands they mean something else."""


def _git(words: tuple[str, ...]) -> str | None:
    letters = {letter for name, each in _GIT_LETTERS.items() if name in words for letter in each}
    short = (word for word in words if word.startswith("-") and not word.startswith("--"))
    running = next((word for word in short if letters & set(word)), None)
    return f"{running!r} is refused: it could run another program" if running else None


def _tar(words: tuple[str, ...]) -> str | None:
    """The first word may be a cluster of letters without a dash."""
    first = words[0] if words else ""
    return (
        f"{first!r} is refused: I and F run other programs"
        if not first.startswith("-") and set(first) & set("IF")
        else None
    )


def _make(words: tuple[str, ...]) -> str | None:
    read = any(word in ("-f-", "-f/dev/stdin") or STREAM.match(word) for word in words)
    return "it would read rules from its input" if read else None


def _second_file(words: tuple[str, ...]) -> str | None:
    operands = [word for word in words if (word == "-" or not word.startswith("-")) and not word.isdigit()]
    return "a second file would be written; leave it out" if len(operands) > 1 else None


PECULIAR: Mapping[str, Callable[[tuple[str, ...]], str | None]] = {
    "awk": _awk,
    "git": _git,
    "sed": _sed,
    "rm": _rm,
    "sqlite3": _sqlite,
    "psql": _psql,
    "tar": _tar,
    "make": _make,
    "uniq": _second_file,
    "xxd": _second_file,
}
