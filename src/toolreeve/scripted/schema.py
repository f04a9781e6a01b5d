"""JSON Schema of a YAML tool; unknown keys are refused."""

from typing import Any

KINDS = ("string", "number", "integer", "boolean", "object", "array")
DANGERS = ("safe", "low", "medium", "high", "critical")


def _object(about: str, /, **properties: Any) -> dict[str, Any]:
    required = [name for name, schema in properties.items() if schema.pop("needed", False)]
    return {
        "type": "object",
        "description": about,
        "additionalProperties": False,
        "properties": properties,
        "required": required,
    }


def _words(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _number(description: str, **bounds: Any) -> dict[str, Any]:
    return {"type": "number", "description": description, **bounds}


def _count(description: str, least: int = 1) -> dict[str, Any]:
    return {"type": "integer", "description": description, "minimum": least}


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


PARAMETER = _object(
    "A parameter of the tool.",
    name=_text("What the template calls it.", pattern="^[A-Za-z_][A-Za-z0-9_-]*$", needed=True),
    type={"enum": list(KINDS), "description": "The kind of value."},
    required=_flag("Whether each call must give it."),
    description=_text("Its description for the model."),
    default={"description": "The value if a call does not give it."},
    enum={"type": "array", "minItems": 1, "description": "The only values it may have."},
    pattern=_text("A regular expression that it must match."),
    minimum=_number("The smallest allowed value."),
    maximum=_number("The largest allowed value."),
    allow_dash=_flag("Whether it may begin with - at the start of a word."),
    allow_code=_flag("Whether it is meant to be code; the tool's danger is then high."),
)

SANDBOX = _object(
    "Where the script runs.",
    requires_confirmation=_flag("Whether a person is asked before each call."),
    confirmation_message=_text("The question shown to the person."),
    timeout=_number("Seconds that a run may take.", exclusiveMinimum=0, maximum=86400),
    working_directory=_text("Where it starts; relative to the workspace."),
    use_temp_isolation=_flag("Whether it starts in a fresh directory that is removed afterwards."),
    allowed_paths=_words("Further paths that it may change; relative to the workspace."),
    allowed_commands=_words("The only programs that it may start."),
    environment_variables={
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean"]},
        "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        "description": "Its environment; ${secret:NAME} stands for a secret.",
    },
    network={"enum": ["none", "guarded", "host"], "description": "What it can reach."},
    max_memory_mb=_count("Megabytes of memory."),
    max_cpu_time_seconds=_count("Seconds of processor time."),
    max_file_size_mb=_count("Megabytes that a file may grow to."),
    max_open_files=_count("Open files.", 8),
    max_processes=_count("Processes."),
    max_output_kb=_count("Kilobytes of output that are kept."),
)

RETRY = _object(
    "Retry after a transient failure.",
    attempts=_count("Attempts in all."),
    backoff={"enum": ["fixed", "linear", "exponential"]},
    backoff_multiplier=_number("How the wait grows.", minimum=1),
    initial_delay=_number("Seconds before the second attempt.", minimum=0),
    max_delay=_number("The longest wait, in seconds.", minimum=0),
    jitter=_flag("Whether waits vary."),
)

BREAKER = _object(
    "Suspend the tool after repeated failures.",
    failure_threshold=_count("Failures that open it."),
    recovery_timeout=_number("Seconds of suspension.", minimum=0),
    monitoring_period=_number("Seconds within which failures count.", exclusiveMinimum=0),
)

CACHING = _object(
    "Cache successful results.",
    enabled=_flag("Whether results are cached."),
    ttl=_number("Seconds that a result stays valid.", minimum=0),
    max_size=_count("Results in the cache."),
    key_template=_text("The arguments that matter: {{url}}:{{method}}"),
)

ERROR = _object(
    "What an exit code means.",
    code={"type": "integer", "description": "The JSON-RPC error code.", "needed": True},
    message=_text("What went wrong."),
    detail={"type": ["string", "object"], "description": "More about it, as a template."},
    retryable=_flag("Whether another attempt may succeed."),
)

TOOL = _object(
    "A tool.",
    name=_text("A title for people."),
    description=_text("The tool's description for the model."),
    script=_text("The script, a template.", minLength=1, needed=True),
    parameters={"type": "array", "items": PARAMETER, "description": "What a call may give."},
    sandbox=SANDBOX,
    error_mapping={
        "type": "object",
        "propertyNames": {"pattern": "^[0-9]{1,3}$"},
        "additionalProperties": {"anyOf": [{"type": "integer"}, ERROR]},
        "description": "What exit codes mean.",
    },
    retry=RETRY,
    circuit_breaker=BREAKER,
    caching=CACHING,
    rate_limit=_object(
        "How often it may run.",
        calls={**_count("Calls"), "needed": True},
        per=_number("in so many seconds.", exclusiveMinimum=0),
    ),
    concurrency=_count("Calls at the same time."),
    danger={"enum": list(DANGERS), "description": "How much harm a call can do."},
    read_only=_flag("Whether calls change nothing."),
    idempotent=_flag("Whether repeating a call does no harm."),
    category=_text("Where it is listed."),
    tags=_words("Words to find it by."),
    examples={"type": "array", "items": {"type": ["object", "string"]}, "description": "Arguments as examples."},
    estimated_cost=_number("Dollars that a call costs.", minimum=0),
)
