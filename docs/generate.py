"""What do the references say? They are written from the code, so that they cannot say anything else.

`python docs/generate.py` writes them; with `--check` it writes nothing and fails where a page is not up to date.
"""

import difflib
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from toolreeve.cli.main import COMMANDS, toolreeve
from toolreeve.cli.options import common_options
from toolreeve.config.field import ProjectScope
from toolreeve.config.fields import SettingField, setting_fields
from toolreeve.config.layers import ALIASES
from toolreeve.config.mcp_servers.schema import SERVER
from toolreeve.config.table_schemas import TOKENS
from toolreeve.core.errors import TRAITS, ErrorCode
from toolreeve.core.tool import FunctionTool
from toolreeve.policy.schema import policy_schema
from toolreeve.policy.shell.allowlist import BLOCKED, STARTED
from toolreeve.policy.shell.programs.spec import names as specified
from toolreeve.runtime.builtin import TOOLS

REFERENCE = Path(__file__).parent / "reference"
NOTICE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from map(_row, rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(plain(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def plain(text: str) -> str:
    """The text with nothing in it that Markdown would take for a mark, code spans aside."""
    pieces = text.split("`")
    pieces[::2] = [re.sub(r"([*<])", r"\\\1", piece) for piece in pieces[::2]]
    return "`".join(pieces)


def prose(*paragraphs: str) -> Iterator[str]:
    for paragraph in paragraphs:
        yield textwrap.fill(paragraph, width=118, break_long_words=False, break_on_hyphens=False)
        yield ""


def code(value: object) -> str:
    return f"`{value}`"


def page(title: str, *parts: Iterable[str]) -> str:
    lines = [NOTICE, "", f"# {title}", "", *(line for part in parts for line in part)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def error_codes() -> str:
    intro = prose(
        "What goes wrong is a result with one of these codes; a tool never raises into its caller. *Recoverable* means "
        "that the runtime looked for what was meant and put it into `error.suggestions`. *Retryable* means that the "
        "same call may succeed later; a single failure may say otherwise in `error.retryable`. *Fatal* means that "
        "trying again changes nothing until a person or the configuration does."
    )
    rows = [
        (
            code(error),
            str(traits.severity),
            "yes" if traits.retryable else "",
            str(traits.exit_status),
            str(traits.jsonrpc),
            traits.meaning,
        )
        for error, traits in ((each, TRAITS[each]) for each in ErrorCode)
    ]
    head = ("code", "class", "retryable", "exit status", "JSON-RPC", "meaning")
    return page("Error codes", intro, table(head, rows), prose("## Exit statuses"), _exit_statuses())


def _exit_statuses() -> Iterator[str]:
    told = re.findall(r"^ {2}(\d+) +(.*)$", str(toolreeve.epilog), re.MULTILINE)
    yield from table(("status", "meaning"), told)


PROJECT = {
    ProjectScope.NEVER: "nothing",
    ProjectScope.LOWER: "lower it",
    ProjectScope.ADD: "add to it",
    ProjectScope.TURN_OFF: "turn it off",
    ProjectScope.STRICTER: "make it stricter",
    ProjectScope.WHEN_TRUSTED: "add to it, once trusted",
}


def configuration() -> str:
    intro = prose(
        "Every setting of `toolreeve.toml`. Later wins: the defaults, your own file, the project's file, the "
        "environment, and what code or a flag says. A project's file may only tighten; the last column says what that "
        "means for each setting. `toolreeve config show` prints the values that hold and where each comes from, "
        "`toolreeve config schema` the JSON Schema for editors. The guide is "
        "[Configuration](../guides/configuration.md)."
    )
    rows = [
        (
            code(setting.key),
            _kind(setting),
            code(json.dumps(setting.document["default"])),
            setting.field.description,
            PROJECT[setting.field.project],
        )
        for setting in setting_fields().values()
    ]
    head = ("key", "type", "default", "meaning", "a project's file may")
    return page("Settings", intro, table(head, rows), _server(), _token(), _variables())


def _server() -> Iterator[str]:
    yield from prose(
        "## A server", "Under `mcp_servers`, by name. The guide is [MCP servers](../guides/mcp-servers.md)."
    )
    about = str(SERVER["description"]).partition(". ")[2]
    yield from prose(about)
    yield from table(("key", "value", "meaning"), _keys(SERVER))


def _token() -> Iterator[str]:
    yield from prose("## A token", "Each of `serve.tokens`. Either `token` or `sha256` is given, and always `user`.")
    yield from table(("key", "value", "meaning"), _keys(TOKENS["items"]))


def _kind(setting: SettingField) -> str:
    schema = setting.document
    if "enum" in schema:
        return " or ".join(code(json.dumps(value)) for value in schema["enum"])
    kind = schema["type"]
    named = f"list of {schema['items']['type']}s" if kind == "array" else _types(kind)
    bounds = {"minimum": "at least", "exclusiveMinimum": "above"}
    limits = [f"{words} {schema[bound]:g}" for bound, words in bounds.items() if bound in schema]
    return ", ".join([named, *limits])


def _types(kind: str | Sequence[str]) -> str:
    return kind if isinstance(kind, str) else " or ".join(kind)


def _variables() -> Iterator[str]:
    yield from prose(
        "## Environment variables",
        "A list of paths is separated by `:`, another list by commas; a JSON array is taken as well. An empty variable "
        "counts as not set.",
    )
    others = {path: [name for name, other in ALIASES.items() if other == path] for path in setting_fields()}
    rows = [
        (code(setting.variable), code(setting.key), ", ".join(map(code, others[path])))
        for path, setting in setting_fields().items()
        if setting.variable is not None
    ]
    yield from table(("variable", "setting", "also as"), rows)


def tools() -> str:
    intro = prose(
        "The tools that come with Toolreeve. Paths are resolved against the workspace. Every answer is bounded: one "
        "that was cut says `truncated`, and `next` is the literal call that continues it. `toolreeve tools NAME` shows "
        "the same in the shell."
    )
    specs = sorted(TOOLS, key=lambda each: (each.spec.category, each.name))
    rows = [
        (f"[{each.name}](#{each.name})", each.spec.category, each.spec.danger.value, _first(each.description))
        for each in specs
    ]
    overview = table(("tool", "category", "danger", "what it does"), rows)
    return page("Builtin tools", intro, overview, *map(_tool, specs))


def _first(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _tool(each: FunctionTool) -> Iterator[str]:
    spec = each.spec
    facts = [f"danger {spec.danger.value}", *(["read-only"] if spec.read_only else [])]
    facts += ["idempotent"] if spec.idempotent and not spec.read_only else []
    yield from (f"## {spec.name}", "", f"*{', '.join(facts)}*", "", plain(" ".join(spec.description.split())), "")
    properties: Mapping[str, Any] = spec.input["properties"]
    if properties:
        rows = [_parameter(name, schema, spec.input["required"]) for name, schema in properties.items()]
        yield from table(("parameter", "type", "default", "meaning"), rows)
    else:
        yield from ("It takes no parameters.", "")
    if spec.output:
        fields = spec.output.get("properties", {})
        rows = [(code(name), _type(schema), "", schema.get("description", "")) for name, schema in fields.items()]
        yield from table(("result field", "type", "", "meaning"), rows)


def _parameter(name: str, schema: Mapping[str, Any], required: Sequence[str]) -> tuple[str, str, str, str]:
    default = "required" if name in required else code(json.dumps(schema["default"])) if "default" in schema else ""
    return code(name), _type(schema), default, schema.get("description", "")


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(code(json.dumps(value)) for value in schema["enum"])
    kind = _types(schema.get("type", "any"))
    if kind == "array":
        items = schema.get("items", {})
        inner = items.get("properties")
        return f"array of {{{', '.join(inner)}}}" if inner else f"array of {_type(items)}s"
    bounds = {"minimum": "at least", "maximum": "at most"}
    return ", ".join([kind, *(f"{words} {schema[key]}" for key, words in bounds.items() if key in schema)])


def cli() -> str:
    intro = prose(
        "The answer goes to stdout, everything said about it to stderr. Exit statuses are listed under "
        "[Error codes](error-codes.md#exit-statuses). `NO_COLOR` is honoured.",
        "## Options of every command",
        "They may stand before or after the name of the command.",
    )
    own = table(("option", "meaning"), _options(common_options()))
    return page("Command line", intro, own, *(_command(name) for name in COMMANDS))


def _command(name: str) -> Iterator[str]:
    context = click.Context(toolreeve, info_name="toolreeve")
    command = toolreeve.get_command(context, name)
    if command is None:
        raise ValueError(f"no command {name!r}")
    yield from _described(command, click.Context(command, parent=context, info_name=name), level=2)


def _described(command: click.Command, context: click.Context, *, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} {context.command_path}", "")
    if isinstance(command, click.Group):
        yield from (_help(command), "")
        yield from _own_options(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _described(inner, click.Context(inner, parent=context, info_name=name), level=level + 1)
        return
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from ("```text", usage, "```", "", _help(command), "")
    yield from _own_options(command)


def _own_options(command: click.Command) -> Iterator[str]:
    common = {option.name for option in common_options(json=not getattr(command, "own_json", False))}
    own = [each for each in command.params if each.name not in common or each.expose_value]
    if rows := list(_options(own)):
        yield from table(("option", "meaning"), rows)


def _help(command: click.Command) -> str:
    """Paragraphs as they are; what is marked to be kept as it is becomes a block of text."""
    parts = inspect.cleandoc(command.help or "").split("\n\n")
    kept = [
        f"```text\n{part.removeprefix(chr(8)).strip(chr(10))}\n```" if part.startswith("\b") else part for part in parts
    ]
    return "\n\n".join(kept)


def _options(params: Iterable[click.Parameter]) -> Iterator[tuple[str, str]]:
    for each in params:
        if isinstance(each, click.Option):
            names = ", ".join(map(code, [*each.opts, *each.secondary_opts]))
            value = "" if each.is_flag else f" {code(each.metavar or _choices(each))}"
            yield names + value, each.help or ""


def _choices(option: click.Option) -> str:
    kind = option.type
    return " | ".join(map(str, kind.choices)) if isinstance(kind, click.Choice) else kind.name.split()[0].upper()


def policy_file() -> str:
    schema = policy_schema()
    rule, condition, example = (schema["$defs"][name] for name in ("rule", "condition", "example"))
    intro = prose(
        f"{schema['description']} The guide is [Policy](../guides/policy.md). Unknown keys, rules that can never "
        "match, rules that another always outranks, and examples that do not hold are errors with file, line and fix.",
        "The file is a mapping with `rules`, a list, and optionally `version: 1`.",
    )
    return page(
        "Policy files",
        intro,
        prose(
            "## A rule", "Only `decision` is required. What is left out does not matter; what is given must all fit."
        ),
        table(("key", "value", "meaning"), _keys(rule)),
        prose("## A condition", "Under `target`, and under each argument of `when`. All parts must hold."),
        table(("key", "value", "meaning"), _keys(condition)),
        prose("## An example", "Under `matches` and `not_matches`."),
        table(("key", "value", "meaning"), _keys(example)),
    )


def _keys(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, each in schema["properties"].items():
        yield code(name), _value(each), each.get("description", "")


def _value(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return f"a {schema['$ref'].rpartition('/')[2]}"
    if "anyOf" in schema:
        first, other = schema["anyOf"]
        return f"{_value(first)}, or {'a list' if other['type'] == 'array' else 'one by name'}"
    if "enum" in schema:
        return " or ".join(code(value) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_value(schema['items']).removeprefix('a ')}s" if "items" in schema else "list"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"{_value(schema['additionalProperties'])} by name"
    kind = str(schema.get("type", "any value"))
    return {"string": "text", "object": "mapping"}.get(kind, kind)


def programs() -> str:
    listed: set[str] = set()
    rows = []
    for role, names in STARTED.items():
        rows.append((role.value, " ".join(map(code, sorted(names - listed)))))
        listed |= names
    reasons: dict[str, list[str]] = {}
    for name, reason in BLOCKED.items():
        reasons.setdefault(reason, []).append(name)
    return page(
        "Programs",
        prose(
            f"The {len(listed)} programs that `execute_command` starts, by the least role that may.",
            "Their arguments must be known: see [Shell commands](../guides/shell.md).",
        ),
        table(("role", "programs"), rows),
        ["## Blocked", ""],
        table(("reason", "programs"), ((reason, " ".join(map(code, names))) for reason, names in reasons.items())),
        ["## Specified", ""],
        prose(f"All {len(specified())} programs whose arguments are known, for `bash` too."),
        prose(" ".join(map(code, specified()))),
    )


PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli,
    "configuration.md": configuration,
    "error-codes.md": error_codes,
    "policy-file.md": policy_file,
    "programs.md": programs,
    "tools.md": tools,
}


def main(args: Sequence[str]) -> int:
    if args not in ([], ["--check"]):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    status = 0
    for name, write in PAGES.items():
        path, text = REFERENCE / name, write()
        before = path.read_text() if path.exists() else ""
        if args and before != text:
            diff = difflib.unified_diff(before.splitlines(), text.splitlines(), name, "now", lineterm="")
            sys.stdout.write("\n".join(diff) + "\n")
            status = 1
        elif before != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
