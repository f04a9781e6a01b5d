"""Attacks on YAML tools: payloads in every way of quoting, in scripts that really run.

The script's PATH holds no program, and bash makes a canary for each one that is looked up: whatever a payload executes
shows, there or in the output. And every value must arrive byte for byte.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from bench.attacks.outcome import Tally
from toolreeve import Toolreeve
from toolreeve.config import Settings, State, Workspace

CONTEXTS: Mapping[str, str] = {
    "bare": "tell {{value}}",
    "bare, inside a word": 'tell x{{value}}y; tell "{{value}}"',
    "double": 'tell "{{value}}"',
    "double, in a text": 'tell "a {{value}} b" "{{value}}"',
    "single": "tell '{{value}}'",
    "single, in a text": "tell 'a {{value}} $b' '{{value}}'",
    "ansi": r"tell $'\t{{value}}\n' $'{{value}}'",
    "heredoc": "IFS= read -r -d '' x <<EOF\n{{value}}\nEOF\ntell \"${x%?}\"",
    "quoted heredoc": "IFS= read -r -d '' x <<'EOF'\n$a `b` \\ {{value}}\nEOF\ntell \"${x%?}\"",
    "tabbed heredoc": 'IFS= read -r -d \'\' x <<-EOF\n\t"{{value}}\n\tEOF\ntell "${x%?}"',
    "here string": "IFS= read -r -d '' x <<< {{value}}\ntell \"${x%?}\"",
    "substitution": 'x=$(printf %s {{value}}.); tell "${x%.}"',
    "quoted substitution": 'x="$(printf %s \'{{value}}\'.)"; tell "${x%.}"',
    "nested substitution": 'x="$(printf %s "$(printf %s "{{value}}".)".)"; tell "${x%..}"',
    "assignment": 'x={{value}}; tell "$x"',
    "array": 'x=({{value}} "{{value}}"); tell "${x[@]}"',
    "loop": 'for x in "{{value}}"; do tell "$x"; done',
    "case": "case {{value}} in '{{value}}') tell \"{{value}}\" ;; esac",
    "comparison": '[[ {{value}} == "{{value}}" ]] && tell {{value}}',
    "function": 'say() { tell "$1"; }; say "{{value}}"',
    "object": '{{#pairs}} tell "{{key}}" {{value}}; {{/pairs}}',
    "list": "{{#list}} tell '{{.}}'; {{/list}}",
}
HEAD = """\
command_not_found_handle() { : > canary; }
tell() { printf '%s\\0' "$@"; }
PATH=/nowhere
"""
AT_ONCE = 8


async def run(corpora: Path | None) -> list[Tally]:
    with tempfile.TemporaryDirectory(prefix="toolreeve-attack-") as top:
        workspace = Path(top) / "work"
        workspace.mkdir()
        tools = Path(top) / "attacked.yaml"
        tools.write_text(json.dumps({"tools": {_id(name): _tool(script) for name, script in CONTEXTS.items()}}))
        settings = Settings(
            workspace=Workspace(dir=str(workspace)), state=State(dir=str(Path(top) / "state")), tool_files=(str(tools),)
        )
        async with Toolreeve(settings=settings) as reeve:
            if reeve.problems:
                raise RuntimeError(str(reeve.problems[0]))
            return [await _attack(name, payloads, reeve, workspace) for name, payloads in _lists(corpora)]


def _id(name: str) -> str:
    return name.replace(", ", "-").replace(" ", "-")


def _tool(script: str) -> dict[str, object]:
    names = {"value": "string", "pairs": "object", "list": "array"}
    used = [{"name": name, "type": kind, "allow_dash": True} for name, kind in names.items()]
    return {"script": HEAD + script + "\n", "parameters": used, "danger": "safe"}


def _lists(corpora: Path | None) -> Iterator[tuple[str, list[str]]]:
    own = (Path(__file__).parent / "templates.txt").read_text().splitlines()
    yield "own", [*own, "\n", "a\nEOF\nid\n", "\tx\n", " ", "\x7f\x1b[0m", "x" * 200_000]
    if corpora is None:
        return
    lists: dict[str, list[str]] = {}
    for line in (corpora / "shell_injection.jsonl").read_text().splitlines():
        row = json.loads(line)
        lists.setdefault(row["list"], []).append(row["payload"])
    yield from sorted(lists.items())


async def _attack(name: str, payloads: Sequence[str], reeve: Toolreeve, workspace: Path) -> Tally:
    tally = Tally(name=name, payloads=len(payloads))
    values = dict.fromkeys(form for payload in payloads for form in (payload, unquote(payload, errors="ignore")))
    gate = asyncio.Semaphore(AT_ONCE)

    async def attempt(context: str, value: str) -> None:
        async with gate:
            await _try(context, value, tally, reeve)

    async with asyncio.TaskGroup() as group:
        for value in values:
            for context in CONTEXTS:
                group.create_task(attempt(context, value))
    if (workspace / "canary").exists():
        (workspace / "canary").unlink()
        tally.escaped.append("a program was looked for that no template names")
    return tally


async def _try(context: str, value: str, tally: Tally, reeve: Toolreeve) -> None:
    tally.attempts += 1
    args = {"value": value, "pairs": {value or "k": value}, "list": [value, value]}
    result = await reeve.call(_id(context), args)
    if "\0" in value:
        tally.refused += 1
        if result.success:
            tally.escaped.append(f"{context}: a NUL was taken: {value!r}")
        return
    told = (result.data or {}).get("stdout", "").split("\0")[:-1]
    if result.success and told == _expected(context, value):
        tally.harmless += 1
    else:
        tally.escaped.append(f"{context}: {value[:200]!r} arrived as {told!r} {result.error}"[:600])


def _expected(context: str, value: str) -> list[str]:
    match context:
        case "bare, inside a word":
            return [f"x{value}y", value]
        case "double, in a text":
            return [f"a {value} b", value]
        case "single, in a text":
            return [f"a {value} $b", value]
        case "ansi":
            return [f"\t{value}\n", value]
        case "quoted heredoc":
            return [f"$a `b` \\ {value}"]
        case "tabbed heredoc":
            return [f'"{value}']
        case "array" | "list":
            return [value, value]
        case "object":
            return [value or "k", value]
        case _:
            return [value]
