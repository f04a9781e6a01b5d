"""What does this YAML or TOML file say, and on which line? Strict: no duplicate keys, no tags, no surprises.

Every value can be traced to its line, so that an error can name the file, the line and the key.
"""

import re
import tomllib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.core.errors import ConfigError

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 32
KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file. `lines` maps the path of keys to each value to its line, counted from one."""

    source: str
    value: Any
    lines: Mapping[KeyPath, int] = field(default_factory=dict)

    def line(self, path: Sequence[str | int]) -> int | None:
        """The line of the value at `path`, or of the nearest thing around it."""
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
    loader = loader_class(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return Document(source, None)
        lines: dict[KeyPath, int] = {}
        return Document(source, _build(loader, node, source, (), lines), lines)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        what = getattr(problem, "problem", None) or str(problem).splitlines()[0]
        raise ConfigError(f"is not valid YAML: {what}", source=source, line=line) from None
    finally:
        loader.dispose()


def _build(loader: Any, node: "yaml.Node", source: str, path: KeyPath, lines: dict[KeyPath, int]) -> Any:
    import yaml

    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if len(path) > MAX_DEPTH:
        raise ConfigError(f"is nested deeper than {MAX_DEPTH} levels", source=source, line=line)
    if not node.tag.startswith("tag:yaml.org,2002:"):
        raise ConfigError(f"uses the tag {node.tag!r}", source=source, line=line, fix="write the value plainly")
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, item, source, (*path, index), lines) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _build_mapping(loader, node, source, path, lines)
    return loader.construct_object(node)


def _build_mapping(
    loader: Any, node: "yaml.MappingNode", source: str, path: KeyPath, lines: dict[KeyPath, int]
) -> dict[str, Any]:
    built: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key: Hashable = loader.construct_object(key_node)
        name = key if isinstance(key, str) else str(key_node.value)
        if key_node.tag == "tag:yaml.org,2002:merge":
            raise ConfigError("uses a merge key", source=source, line=line, fix="write the keys out")
        if name in built:
            first = lines[(*path, name)]
            raise ConfigError(
                f"has the key {name!r} twice (first on line {first})", source=source, line=line, fix="keep one of them"
            )
        lines[(*path, name)] = line
        built[name] = _build(loader, value_node, source, (*path, name), lines)
    return built


_TABLE = re.compile(r"^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}\s*(?:#.*)?$")
_ASSIGNMENT = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_KEY_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def parse_toml(text: str, source: str) -> Document:
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        found = re.search(r"at line (\d+)", str(problem))
        what = re.sub(r"\s*\(at .*\)$", "", str(problem))
        raise ConfigError(f"is not valid TOML: {what}", source=source, line=int(found[1]) if found else None) from None
    return Document(source, value, _toml_lines(text))


def _toml_lines(text: str) -> dict[KeyPath, int]:
    """Where tables and keys begin. Keys inside inline tables and multi-line values take the line of what holds them."""
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
