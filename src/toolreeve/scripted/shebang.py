"""Script interpreters: bash, unless the first line names another program.

Only bash scripts are templates: other languages have their own quoting rules, so their scripts read the arguments as
JSON from a descriptor.
"""

import re
from dataclasses import dataclass

from toolreeve.scripted.syntax import TemplateProblem

BASH = ("bash", "sh", "dash", "ash")
VALUES = "TOOLREEVE_VALUES"
ARGUMENTS = "TOOLREEVE_ARGUMENTS"
SCRIPT = "TOOLREEVE_SCRIPT"
MAX_ARGUMENT = 100 * 1024
PREAMBLE = (
    f'mapfile -d "" -t -u "${{{VALUES}##*/}}" __toolreeve; __toolreeve_fd=${{{VALUES}##*/}}; '
    f"exec {{__toolreeve_fd}}<&-; unset {VALUES} __toolreeve_fd\n"
)
_HAND_OVER = f'exec "$0" "$@" "${SCRIPT}"'
_SOURCE = f'. "${SCRIPT}"'
_ENV_PROGRAM = re.compile(r"^#!\s*\S*/env\s+(?:-S\s+)?(\S+)(.*)$")
_PROGRAM = re.compile(r"^#!\s*(\S+)(.*)$")
_PLACEHOLDER = re.compile(r"\{\{\s*[#^]?\s*([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Shebang:
    program: str
    options: tuple[str, ...] = ()

    @property
    def is_bash(self) -> bool:
        return self.program.rsplit("/", 1)[-1] in BASH

    @property
    def name(self) -> str:
        return self.program.rsplit("/", 1)[-1]


def read_interpreter(script: str) -> Shebang:
    """Raises TemplateProblem."""
    first = script.split("\n", 1)[0]
    found = _ENV_PROGRAM.match(first) or _PROGRAM.match(first)
    if found is None:
        return Shebang("bash")
    if "{{" in first:
        raise TemplateProblem("the interpreter line contains a placeholder", line=1, fix="write it out")
    options = tuple(found[2].split())
    name = found[1].rsplit("/", 1)[-1]
    if name == "bash":
        return Shebang("bash", options)
    return Shebang("bash", ("--posix", *options)) if name in BASH else Shebang(found[1], options)


def foreign_placeholders(script: str, names: set[str]) -> list[tuple[int, str]]:
    """Parameters that a script in another language uses as if it were a template, with their lines."""
    return [
        (script.count("\n", 0, found.start()) + 1, found[1])
        for found in _PLACEHOLDER.finditer(script)
        if found[1] in names
    ]


def bash_command(
    interpreter: Shebang, script: str, values: bytes, name: str
) -> tuple[tuple[str, ...], dict[str, bytes]]:
    """The argv that runs a script, and the files it needs. A long script is passed on a descriptor too."""
    text = script
    files: dict[str, bytes] = {}
    if values:
        text = PREAMBLE + script
        files[VALUES] = values
    if len(text) > MAX_ARGUMENT:
        files[SCRIPT] = text.encode()
        text = _SOURCE
    return (interpreter.program, *interpreter.options, "-c", text, name), files


def foreign_command(interpreter: Shebang, script: str) -> tuple[tuple[str, ...], dict[str, bytes]]:
    """As `bash_command`, for another interpreter, which gets its script as the path of a descriptor."""
    return ("bash", "-c", _HAND_OVER, interpreter.program, *interpreter.options), {SCRIPT: script.encode()}
