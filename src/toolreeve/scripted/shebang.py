"""Who reads a script? Bash, unless its first line names another program; only bash scripts are templates.

Another language has quoting of its own that we do not know: there, arguments are read from a descriptor as JSON.
"""

import re
from dataclasses import dataclass

from toolreeve.scripted.syntax import TemplateProblem

BASH = ("bash", "sh", "dash", "ash")
VALUES, ARGUMENTS, SCRIPT = "TOOLREEVE_VALUES", "TOOLREEVE_ARGUMENTS", "TOOLREEVE_SCRIPT"
LONGEST_ARGUMENT = 100 * 1024
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
        raise TemplateProblem("the line that names the interpreter holds a placeholder", line=1, fix="write it out")
    options = tuple(found[2].split())
    name = found[1].rsplit("/", 1)[-1]
    if name == "bash":
        return Shebang("bash", options)
    return Shebang("bash", ("--posix", *options)) if name in BASH else Shebang(found[1], options)


def foreign_placeholders(script: str, names: set[str]) -> list[tuple[int, str]]:
    """Parameters that a script in another language tries to use as if it were a template, with their lines."""
    return [
        (script.count("\n", 0, found.start()) + 1, found[1])
        for found in _PLACEHOLDER.finditer(script)
        if found[1] in names
    ]


def bash_command(
    interpreter: Shebang, script: str, values: bytes, name: str
) -> tuple[tuple[str, ...], dict[str, bytes]]:
    """The argv that runs a script, and the files it needs. A long script travels on a descriptor too."""
    text, files = (PREAMBLE + script, {VALUES: values}) if values else (script, {})
    if len(text) > LONGEST_ARGUMENT:
        text, files = _SOURCE, {**files, SCRIPT: text.encode()}
    return (interpreter.program, *interpreter.options, "-c", text, name), files


def foreign_command(interpreter: Shebang, script: str) -> tuple[tuple[str, ...], dict[str, bytes]]:
    """As `bash_command`, for another interpreter, which finds its script under the name of a descriptor."""
    return ("bash", "-c", _HAND_OVER, interpreter.program, *interpreter.options), {SCRIPT: script.encode()}
