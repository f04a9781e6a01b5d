"""Fast start of a hook that decides itself: lazy modules, compiled code.

Two thirds of its time went into a library that it does not use and into compiling, again and again, what dataclasses
generate and regular expressions mean. Modules of the standard library are loaded when something of them is used, and
what was compiled is kept beside Python's own bytecode, with the same trust: its owner's. An entry is found by its whole
source, so none can be out of date. No part of a configuration, policy or call is kept.
"""

import _sre  # type: ignore[import-not-found]
import marshal
import os
import stat
import sys
from posixpath import dirname, join

import toolreeve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    Regex = tuple[int, list[int], int, dict[str, int], tuple[str | None, ...]]

LAZY = (
    *("asyncio", "ctypes", "dis", "html", "inspect", "ipaddress", "jsonschema_rs", "logging", "platform", "random"),
    *("ssl", "subprocess", "sysconfig", "traceback"),
)
MOST_ENTRIES = 5_000
_UNKNOWN_VERSION = (3, 14)
"""Of Python, whose private parts may differ: from there on nothing is kept."""
_VERSION = (sys.version, _sre.MAGIC)


class CompiledCode:
    """What dataclasses and `re` compile, by its source; `save` keeps what is new."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._codes: dict[str, CodeType] = {}
        self._regexes: dict[tuple[str, int], Regex] = {}
        self._load()
        self._known = len(self)

    def __len__(self) -> int:
        return len(self._codes) + len(self._regexes)

    def install(self) -> None:
        """Both modules look there first, in this process."""
        import dataclasses
        from re import _compiler  # type: ignore[attr-defined]  # private

        compile_regex = _compiler.compile

        def execute(source: str, namespace: "dict[str, Any]", defined: "dict[str, Any]") -> None:
            code = self._codes.get(source)
            if code is None:
                code = self._codes[source] = compile(source, "<string>", "exec")
            exec(code, namespace, defined)  # noqa: S102 - as dataclasses does

        def compile_cached(pattern: "Any", flags: int = 0) -> "Any":
            flags = int(flags)
            if type(pattern) is not str:
                return compile_regex(pattern, flags)
            known = self._regexes.get((pattern, flags))
            if known is not None:
                return _sre.compile(pattern, *known)
            if _is_of_module():
                self._regexes[pattern, flags] = _translate(pattern, flags)
            return compile_regex(pattern, flags)

        dataclasses.inspect = _Inspect()  # type: ignore[attr-defined]
        dataclasses.exec = execute  # type: ignore[attr-defined]  # found before the builtin
        _compiler.compile = compile_cached

    def save(self) -> None:
        """Does nothing where Python would not write bytecode either."""
        if sys.dont_write_bytecode or self._known == len(self) or len(self) > MOST_ENTRIES:
            return
        temporary = f"{self._path}.{os.getpid()}"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(marshal.dumps((_VERSION, self._codes, self._regexes)))
            os.replace(temporary, self._path)  # noqa: PTH105 - pathlib takes long to import
        except OSError:
            return

    def _load(self) -> None:
        try:
            with open(os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                found = os.fstat(file.fileno())
                if found.st_uid not in (0, os.geteuid()) or stat.S_IMODE(found.st_mode) & 0o022:
                    return
                version, codes, regexes = marshal.loads(file.read())  # noqa: S302 - as trusted as bytecode
        except (OSError, ValueError, EOFError, TypeError):
            return
        if version == _VERSION:
            self._codes = codes
            self._regexes = regexes


def prepare() -> CompiledCode:
    """Call it before anything else is imported, and `save` what it returns once the answer is out."""
    folder = dirname(toolreeve.__spec__.cached or os.devnull)
    code = CompiledCode(join(folder, f"hook.{sys.implementation.cache_tag}.compiled"))
    _delay()
    if sys.version_info < _UNKNOWN_VERSION:
        code.install()
    return code


class _Inspect:
    """`inspect` without signatures, which dataclasses only write into descriptions of classes that have none."""

    signature = staticmethod(lambda _: "")

    def __getattr__(self, name: str) -> "Any":
        import inspect

        return getattr(inspect, name)


class _LazyModule(type(sys)):  # type: ignore[misc]
    """Executed when an attribute is first asked for. (That of `importlib` is executed by a second import.)"""

    def __getattr__(self, name: str) -> "Any":
        self.__class__ = type(sys)  # type: ignore[assignment]
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def _delay() -> None:
    from importlib.machinery import PathFinder

    for name in LAZY:
        spec = None if name in sys.modules else PathFinder.find_spec(name)
        if spec is None:
            continue
        sys.modules[name] = module = _LazyModule(name)
        module.__spec__ = spec
        module.__loader__ = spec.loader
        module.__file__ = spec.origin
        if spec.submodule_search_locations is not None:
            module.__path__ = spec.submodule_search_locations
        module.__package__ = spec.parent


def _is_of_module() -> bool:
    """Whether the pattern stands in a module, and is none of a user's."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in ("re", "re._compiler"):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and frame.f_code.co_name == "<module>"


def _translate(pattern: str, flags: int) -> "Regex":
    """As `re` compiles it, up to the last step."""
    from re import _compiler, _parser  # type: ignore[attr-defined]  # private

    parsed = _parser.parse(pattern, flags)
    names = parsed.state.groupdict
    by_number: list[str | None] = [None] * parsed.state.groups
    for name, number in names.items():
        by_number[number] = name
    code = [int(word) for word in _compiler._code(parsed, flags)]
    return flags | parsed.state.flags, code, parsed.state.groups - 1, dict(names), tuple(by_number)
