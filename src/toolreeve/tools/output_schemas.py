"""Output schemas of the builtin tools, for clients to check.

Fields named here are always present; a tool may add others.
"""

from collections.abc import Mapping
from typing import Any

Shape = Mapping[str, Any]

STRING: Shape = {"type": "string"}
INTEGER: Shape = {"type": "integer"}
COUNT: Shape = {"type": "integer", "minimum": 0}
NUMBER: Shape = {"type": "number"}
BOOLEAN: Shape = {"type": "boolean"}
STRINGS: Shape = {"type": "array", "items": STRING}
NUMBERS: Shape = {"type": "array", "items": NUMBER}


def fields(**shapes: Shape) -> dict[str, Any]:
    """An object that has all of these."""
    return {
        "type": "object",
        "properties": {name: dict(shape) for name, shape in shapes.items()},
        "required": [*shapes],
    }


def each(shape: Shape) -> Shape:
    return {"type": "array", "items": shape}


def by_name(shape: Shape) -> Shape:
    return {"type": "object", "additionalProperties": shape}


def nullable(shape: Shape) -> Shape:
    return {**shape, "type": [shape["type"], "null"]}


_ENTRY = fields(name=STRING, is_dir=BOOLEAN, size=COUNT)
_LINE = fields(path=STRING, line=COUNT, text=STRING)
_RESTORED = fields(path=STRING, outcome=STRING)
_REPLY = fields(status_code=INTEGER, headers=by_name(STRING), body=STRING, success=BOOLEAN, url=STRING, encoding=STRING)
_STREAMS = {"stdout": STRING, "stderr": STRING, "exit_code": INTEGER}
_RAN = fields(tool=STRING, directory=STRING, command=STRING, exit_code=INTEGER)
_QUALITY = fields(target=STRING, **_STREAMS, runs=each(_RAN))

OUTPUT_SCHEMAS: Mapping[str, Shape] = {
    "read_file": fields(
        content=STRING, path=STRING, size=COUNT, lines=nullable(COUNT), encoding=STRING, exists=BOOLEAN
    ),
    "file_exists": fields(exists=BOOLEAN, is_file=BOOLEAN, is_directory=BOOLEAN, path=STRING),
    "list_directory": fields(
        path=STRING, files=STRINGS, directories=STRINGS, entries=each(_ENTRY), count=COUNT, total=nullable(COUNT)
    ),
    "search_files": fields(pattern=STRING, path=STRING, matches=STRINGS, count=COUNT),
    "search_text": fields(matches=each(_LINE), count=COUNT, files_searched=COUNT),
    "search_directory": fields(query=STRING, base=STRING, matches=STRINGS, count=COUNT),
    "write_file": fields(written=BOOLEAN, path=STRING, size=COUNT, mode=STRING, existed=BOOLEAN, undoable=BOOLEAN),
    "edit_file": fields(diff=STRING, path=STRING, edits=COUNT, dry_run=BOOLEAN, undoable=BOOLEAN),
    "delete_file": fields(deleted=BOOLEAN, existed=BOOLEAN, path=STRING, undoable=BOOLEAN),
    "move_file": fields(
        moved=BOOLEAN, source=STRING, destination=STRING, path=STRING, overwritten=BOOLEAN, undoable=BOOLEAN
    ),
    "read_output": fields(content=STRING, call_id=STRING, offset=COUNT, total=COUNT),
    "undo": fields(files=each(_RESTORED), count=COUNT),
    "http_get": _REPLY,
    "http_post": _REPLY,
    "http_put": _REPLY,
    "http_delete": _REPLY,
    "http_request": _REPLY,
    "fetch_url": fields(
        content=STRING, status_code=INTEGER, content_type=STRING, size=COUNT, url=STRING, encoding=STRING
    ),
    "extract_links": fields(links=STRINGS, count=COUNT, unique_links=STRINGS),
    "get_system_info": fields(
        os=STRING,
        os_release=STRING,
        architecture=STRING,
        cpu_count=COUNT,
        load_average=NUMBERS,
        memory_total_gb=NUMBER,
        memory_available_gb=NUMBER,
        memory_percent=NUMBER,
        disk_total_gb=NUMBER,
        disk_free_gb=NUMBER,
        disk_percent=NUMBER,
        python_version=STRING,
        workspace=STRING,
    ),
    "get_datetime": fields(
        datetime=STRING,
        date=STRING,
        time=STRING,
        timestamp=NUMBER,
        timezone=STRING,
        utc_offset=STRING,
        weekday=STRING,
    ),
    "list_llm_models": fields(models=by_name(STRINGS), count=COUNT, providers=by_name(COUNT)),
    "get_audit_log": fields(entries=each({"type": "object"}), count=COUNT),
    "calculate": fields(expression=STRING, result=NUMBER),
    "bash": fields(**_STREAMS),
    "execute_command": fields(stdout=STRING, stderr=STRING, returncode=INTEGER),
    "git_status": fields(**_STREAMS),
    "git_diff": fields(**_STREAMS),
    "run_tests": _QUALITY,
    "run_lint": _QUALITY,
    "run_format": _QUALITY,
    "run_typecheck": _QUALITY,
    "run_build": _QUALITY,
}
