"""YAML and TOML documents, parsed strictly, with the line of every value.

No duplicate keys, tags or aliases. An error can always name the file, the line and the key.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.core.errors import ConfigError

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 32
KeyPath = tuple[str | int, ...]
_PLAIN_TAGS = frozenset({"map", "seq", "str", "int", "float", "bool", "null", "timestamp"})


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file. `lines` maps the path of keys to each value to its line, counted from one."""

    source: str
    value: Any
    lines: Mapping[KeyPath, int] = field(default_factory=dict)

    def line(self, path: Sequence[str | int]) -> int | None:
        """The line of the value at `path`, or of its nearest parent."""
        for end in range(len(path), -1, -1):
            if (found := self.lines.get(tuple(path[:end]))) is not None:
                return found
        return None

    def error(self, problem: str, *, path: Sequence[str | int] = (), fix: str = "") -> ConfigError:
        return ConfigError(problem, source=self.source, line=self.line(path), key=dotted(path), fix=fix)


def dotted(path: Sequence[str | int]) -> str:
    """`rules[2].when.path`"""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def read_document(path: Path) -> Document:
    """Parse a `.toml`, `.yaml` or `.yml` file. Raises ConfigError."""
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise ConfigError(f"cannot be read: {problem.strerror}", source=path) from None
    if len(content) > MAX_BYTES:
        raise ConfigError(
            f"is larger than {MAX_BYTES // 1024 // 1024} MB", source=path, fix="split it into several files"
        )
    try:
        text = content.decode()
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise ConfigError("is not UTF-8 text", source=path, line=line, fix="save the file as UTF-8") from None
    return parse_toml(text, str(path)) if path.suffix == ".toml" else parse_yaml(text, str(path))


def parse_yaml(text: str, source: str) -> Document:
    import yaml

    loader_class = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _require_shallow(loader_class(text), source)
        loader = loader_class(text)
        node = loader.get_single_node()
        return Document(source, None) if node is None else _YamlBuilder(loader, source).document(node)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        what = getattr(problem, "problem", None) or str(problem).splitlines()[0]
        raise ConfigError(f"is not valid YAML: {what}", source=source, line=line) from None


def _require_shallow(loader: Any, source: str) -> None:
    """Composing nodes recurses in C without a limit: a file of brackets would crash the process."""
    depth = 0
    while (event := loader.get_event()) is not None:
        depth += _STEPS.get(type(event).__name__, 0)
        if depth > MAX_DEPTH + 1:
            line = event.start_mark.line + 1
            raise ConfigError(f"is nested deeper than {MAX_DEPTH} levels", source=source, line=line)


_STEPS = {"SequenceStartEvent": 1, "MappingStartEvent": 1, "SequenceEndEvent": -1, "MappingEndEvent": -1}


class _YamlBuilder:
    """Plain values from YAML nodes. Aliases are refused: a few of them can expand to billions of values."""

    def __init__(self, loader: Any, source: str) -> None:
        self._loader = loader
        self._source = source
        self._lines: dict[KeyPath, int] = {}
        self._seen: set[int] = set()

    def document(self, node: "yaml.Node") -> Document:
        return Document(self._source, self._build(node, ()), self._lines)

    def _build(self, node: "yaml.Node", path: KeyPath) -> Any:
        self._lines.setdefault(path, node.start_mark.line + 1)
        if len(path) > MAX_DEPTH:
            raise self._refusal(node, f"is nested deeper than {MAX_DEPTH} levels", "write it flatter")
        if id(node) in self._seen:
            raise self._refusal(node, "is used again through an alias", "write the value out where it is needed")
        self._seen.add(id(node))
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind not in _PLAIN_TAGS:
            raise self._refusal(node, f"uses the tag {kind!r}", "write the value plainly")
        if kind == "seq":
            return [self._build(item, (*path, index)) for index, item in enumerate(node.value)]
        if kind == "map":
            return self._build_mapping(node, path)
        return self._loader.construct_object(node)

    def _build_mapping(self, node: "yaml.Node", path: KeyPath) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag.endswith(":merge"):
                raise self._refusal(key_node, "uses a merge key", "write the keys out")
            name = str(key_node.value)
            if name in built:
                first = self._lines[(*path, name)]
                raise self._refusal(key_node, f"has the key {name!r} twice (first on line {first})", "keep one of them")
            self._lines[(*path, name)] = key_node.start_mark.line + 1
            built[name] = self._build(value_node, (*path, name))
        return built

    def _refusal(self, node: "yaml.Node", problem: str, fix: str) -> ConfigError:
        return ConfigError(problem, source=self._source, line=node.start_mark.line + 1, fix=fix)


_TABLE = re.compile(r"^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_KEY_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def parse_toml(text: str, source: str) -> Document:
    import tomllib

    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        found = re.search(r"at line (\d+)", str(problem))
        what = re.sub(r"\s*\(at .*\)$", "", str(problem))
        raise ConfigError(f"is not valid TOML: {what}", source=source, line=int(found[1]) if found else None) from None
    except RecursionError:
        raise ConfigError("is not valid TOML: it is nested too deeply", source=source) from None
    return Document(source, value, _toml_lines(text))


def _toml_lines(text: str) -> dict[KeyPath, int]:
    """Where tables and keys begin. Keys inside inline tables and multi-line values take the line of their parent."""
    lines: dict[KeyPath, int] = {(): 1}
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _TABLE.match(line):
            table = _key_parts(header[1])
            if line.lstrip().startswith("[["):
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            for end in range(1, len(table) + 1):
                lines.setdefault(table[:end], number)
        elif assignment := _ASSIGNMENT.match(line):
            lines.setdefault((*table, *_key_parts(assignment[1])), number)
    return lines


def _key_parts(text: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in _KEY_PART.findall(text))
