"""Effects of the builtin tools, and the call that continues a result."""

from collections.abc import Sequence
from typing import Any

from toolreeve.core import json
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Files, Kind
from toolreeve.core.tool import Arguments, ListEffects


def next_call(tool: str, **args: Any) -> str:
    """The literal call without its None arguments: `read_file(path="a.log", offset=2001)`."""
    given = ", ".join(f"{name}={json.dumps(value).decode()}" for name, value in args.items() if value is not None)
    return f"{tool}({given})"


def nothing(_: Arguments, __: Files) -> Sequence[Effect]:
    """The effects of a tool that touches no file, program or host: declared as none, not undeclared."""
    return ()


def reading(parameter: str = "path") -> ListEffects:
    """Effects of a tool that reads the file that one parameter names."""
    return lambda args, files: (Effect(EffectKind.READ, target(args, parameter, files)),)


def naming(parameter: str = "path") -> ListEffects:
    """Effects of a tool that only lists names."""
    return lambda args, files: (Effect(EffectKind.READ, target(args, parameter, files), Reach.NAMES),)


def reading_below(parameter: str = "path") -> ListEffects:
    """Effects of a tool that reads every file of a directory, if it is given one."""
    return lambda args, files: (touching(EffectKind.READ, target(args, parameter, files), files),)


def writing(parameter: str = "path") -> ListEffects:
    return lambda args, files: (Effect(EffectKind.WRITE, target(args, parameter, files)),)


def touching(kind: EffectKind, path: str, files: Files) -> Effect:
    """An effect on a directory is one on everything below it."""
    try:
        found = files.stat(path)
    except ToolError:  # a forbidden path is refused when it is touched
        found = None
    is_directory = found is not None and found.kind is Kind.DIRECTORY
    return Effect(kind, path, Reach.BELOW if is_directory else Reach.EXACT)


def removing(args: Arguments, parameter: str, files: Files) -> Sequence[Effect]:
    """Removes a name: if it is a link, rules about the link apply as well as those about its target."""
    paths = dict.fromkeys((target(args, parameter, files), _by_name(str(args.get(parameter, ".")), files)))
    return tuple(touching(EffectKind.DELETE, path, files) for path in paths)


def _by_name(path: str, files: Files) -> str:
    """The path of the name itself, even if it is a link."""
    folder, slash, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", "..", "~"):
        return files.target(path)
    return f"{files.target(folder + slash or '.').rstrip('/')}/{name}"


def target(args: Arguments, parameter: str, files: Files) -> str:
    """The path that a parameter names. Accepts any value: effects may be requested for an invalid call."""
    return files.target(str(args.get(parameter, ".")))


def shown_name(name: str) -> str:
    """A file name as text; bytes that are not UTF-8 are escaped, because JSON cannot carry them."""
    if name.isascii():
        return name
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
