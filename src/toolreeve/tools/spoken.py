"""How does a tool say which call continues its answer, and which paths it touches?"""

from collections.abc import Sequence
from typing import Any

from toolreeve.core import json
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.files import Files
from toolreeve.core.tool import Arguments, ListEffects


def next_call(tool: str, **args: Any) -> str:
    """The literal call, arguments that are None left out: `read_file(path="a.log", offset=2001)`."""
    given = ", ".join(f"{name}={json.dumps(value).decode()}" for name, value in args.items() if value is not None)
    return f"{tool}({given})"


def reading(parameter: str = "path") -> ListEffects:
    """The effect of a tool that reads what one parameter names."""
    return _touching(EffectKind.READ, parameter)


def writing(parameter: str = "path") -> ListEffects:
    return _touching(EffectKind.WRITE, parameter)


def deleting(parameter: str = "path") -> ListEffects:
    return _touching(EffectKind.DELETE, parameter)


def _touching(kind: EffectKind, parameter: str) -> ListEffects:
    def effects(args: Arguments, files: Files) -> Sequence[Effect]:
        return (Effect(kind, target(args, parameter, files)),)

    return effects


def target(args: Arguments, parameter: str, files: Files) -> str:
    """The path that a parameter names. Any value is answered: effects may be asked of a call that is not valid."""
    return files.target(str(args.get(parameter, ".")))


def shown_name(name: str) -> str:
    """A file name as text; bytes that are not UTF-8 are spelled out, for JSON cannot carry them."""
    if name.isascii():
        return name
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
