"""How does a tool say which call continues its answer, and which paths it touches?"""

from collections.abc import Sequence
from typing import Any

from toolreeve.core import json
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Files, Kind
from toolreeve.core.tool import Arguments, ListEffects


def next_call(tool: str, **args: Any) -> str:
    """The literal call, arguments that are None left out: `read_file(path="a.log", offset=2001)`."""
    given = ", ".join(f"{name}={json.dumps(value).decode()}" for name, value in args.items() if value is not None)
    return f"{tool}({given})"


def nothing(_: Arguments, __: Files) -> Sequence[Effect]:
    """The effects of a tool that touches no file, program or host: it says so, rather than nothing."""
    return ()


def reading(parameter: str = "path") -> ListEffects:
    """The effect of a tool that reads the file that one parameter names."""
    return lambda args, files: (Effect(EffectKind.READ, target(args, parameter, files)),)


def naming(parameter: str = "path") -> ListEffects:
    """Of one that only tells which names there are."""
    return lambda args, files: (Effect(EffectKind.READ, target(args, parameter, files), Reach.NAMES),)


def reading_below(parameter: str = "path") -> ListEffects:
    """Of one that looks into every file of a directory, where it is given one."""
    return lambda args, files: (touching(EffectKind.READ, target(args, parameter, files), files),)


def writing(parameter: str = "path") -> ListEffects:
    return lambda args, files: (Effect(EffectKind.WRITE, target(args, parameter, files)),)


def touching(kind: EffectKind, path: str, files: Files) -> Effect:
    """Whatever is done to a directory is done to all that it holds."""
    try:
        found = files.stat(path)
    except ToolError:  # what may not be looked at is refused when it is to be touched
        found = None
    return Effect(kind, path, Reach.BELOW if found is not None and found.kind is Kind.DIRECTORY else Reach.EXACT)


def removing(args: Arguments, parameter: str, files: Files) -> Sequence[Effect]:
    """Takes a name away: where it is a link, rules about the link hold as well as those about what it leads to."""
    paths = dict.fromkeys((target(args, parameter, files), _by_name(str(args.get(parameter, ".")), files)))
    return tuple(touching(EffectKind.DELETE, path, files) for path in paths)


def _by_name(path: str, files: Files) -> str:
    """Where the name itself stands, though it be a link."""
    folder, slash, name = path.rstrip("/").rpartition("/")
    if name in ("", ".", "..", "~"):
        return files.target(path)
    return f"{files.target(folder + slash or '.').rstrip('/')}/{name}"


def target(args: Arguments, parameter: str, files: Files) -> str:
    """The path that a parameter names. Any value is answered: effects may be asked of a call that is not valid."""
    return files.target(str(args.get(parameter, ".")))


def shown_name(name: str) -> str:
    """A file name as text; bytes that are not UTF-8 are spelled out, for JSON cannot carry them."""
    if name.isascii():
        return name
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
