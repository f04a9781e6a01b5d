from pathlib import Path

import pytest

from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ConfigError, ConfigErrors
from toolreeve.core.limits import Caching, CircuitBreaker, Retry
from toolreeve.core.process import ProcessLimits
from toolreeve.scripted.definition import Definition, read_definitions

DOCUMENTED = Path(__file__).with_name("documented.yaml")


def declared(folder: Path, text: str) -> list[Definition]:
    path = folder / "tools.yaml"
    path.write_text(text)
    return read_definitions(path)


def documented() -> dict[str, Definition]:
    return {each.id: each for each in read_definitions(DOCUMENTED)}


def test_every_documented_form_of_a_tool_is_read() -> None:
    assert len(documented()) == 14


def test_a_tool_is_read_with_everything_it_says() -> None:
    found = documented()["web_request"]

    assert (found.title, found.description) == ("Request", "Send a request with curl")
    assert found.parameters.schema["required"] == ["method", "url"]
    assert found.parameters.schema["properties"]["headers"] == {"type": "object"}
    assert found.sandbox.private
    assert found.sandbox.environment["API_KEY"] == "an-example-of-a-key"
    assert found.danger is DangerLevel.LOW


def test_limits_are_those_of_the_file_or_the_defaults() -> None:
    found = documented()

    assert found["data_processor"].sandbox.limits == ProcessLimits(
        memory_mb=1024, cpu_seconds=300, file_size_mb=100, open_files=200, processes=5
    )
    assert found["unreliable_tool"].sandbox.limits == ProcessLimits()


def test_resilience_is_read() -> None:
    found = documented()

    assert found["unreliable_tool"].limits.retry == Retry(attempts=3, backoff_multiplier=2, max_delay=30)
    assert found["unreliable_tool"].idempotent
    assert found["flaky_api"].limits.circuit_breaker == CircuitBreaker()
    assert found["cached_api"].limits.caching == Caching(key_template="{{url}}:{{method}}")


def test_names_that_only_the_template_knows_become_parameters() -> None:
    found = documented()

    assert found["database_query"].parameters.schema["required"] == ["host", "database", "query", "user"]
    assert found["heavy_request"].parameters.implied == ("timeout",)
    assert found["short_request"].parameters.implied == ("headers", "data")
    assert found["short_request"].parameters.schema["required"] == ["method", "url"]
    assert found["flaky_api"].parameters.schema["required"] == ["url"]


def test_confirmation_is_what_the_author_asks() -> None:
    found = documented()

    assert found["dangerous_operation"].confirmation == "There is no way back. Go on?"
    assert found["web_request"].confirmation is None
    assert found["dangerous_operation"].danger is DangerLevel.MEDIUM


def test_a_file_may_hold_tools_without_the_key_above_them(tmp_path: Path) -> None:
    (found,) = declared(tmp_path, "say:\n  script: echo {{text}}\n")

    assert found.id == "say"


def test_a_parameter_that_is_code_makes_the_tool_dangerous(tmp_path: Path) -> None:
    text = "run:\n  danger: low\n  script: bash -c {{code}}\n  parameters: [{name: code, allow_code: true}]\n"

    assert declared(tmp_path, text)[0].danger is DangerLevel.HIGH


WRONG = {
    "tols:\n  a:\n    script: x\n": ("tols", 1, "unknown 'a'"),
    "tools:\n  a:\n    scrpt: x\n": ("tools.a", 2, "unknown 'scrpt' (did you mean 'script'?)"),
    "tools:\n  a:\n    description: x\n": ("tools.a.script", 2, "is required but missing"),
    "tools: []\n": ("tools", 1, "contains no tools"),
    "": ("", None, "contains no tools"),
    "tools:\n  a:\n    script: x\nmore: 1\n": ("more", 4, "unknown key"),
    "tools:\n  'a b':\n    script: x\n": ("tools.a b", 2, "is not a valid tool name"),
    "tools:\n  a:\n    script: x\n    sandbox:\n      timeout: soon\n": (
        "tools.a.sandbox.timeout",
        5,
        "expected number",
    ),
    "tools:\n  a:\n    script: x\n    resource_limits:\n      max_memory_mb: 5\n": (
        "tools.a.resource_limits",
        4,
        "limits belong under sandbox",
    ),
    "tools:\n  a:\n    script: x\n    sandbox:\n      memory: 5\n": ("tools.a.sandbox", 4, "unknown 'memory'"),
    "tools:\n  a:\n    script: |\n      true\n      eval {{x}}\n": (
        "tools.a.script",
        5,
        "would be evaluated by 'eval'",
    ),
    "tools:\n  a:\n    script: echo {{x\n": ("tools.a.script", 3, "{{ is never closed"),
    "tools:\n  a:\n    script: |\n      #!/usr/bin/python3\n      print({{x}})\n    parameters: [{name: x}]\n": (
        "tools.a.script",
        5,
        "only bash scripts are templates",
    ),
    "tools:\n  a:\n    script: echo {{pathh}}\n    parameters:\n      - name: path\n": (
        "tools.a.script",
        3,
        "did you mean 'path'?",
    ),
    "tools:\n  a:\n    script: x\n    parameters:\n      - {name: n}\n      - {name: n}\n": (
        "tools.a.parameters[1].name",
        6,
        "is declared twice",
    ),
    "tools:\n  a:\n    script: x\n    parameters:\n      - {name: n, type: integer, default: x}\n": (
        "tools.a.parameters[0].default",
        5,
        "expected integer",
    ),
    "tools:\n  a:\n    script: x\n    parameters:\n      - {name: n, type: float}\n": (
        "tools.a.parameters[0].type",
        5,
        "must be one of",
    ),
    "tools:\n  a:\n    script: x\n    parameters:\n      - {name: n, pattern: '('}\n": (
        "tools.a.parameters[0]",
        5,
        'not a usable JSON Schema: /pattern: "(" is not a valid regular expression',
    ),
    "tools:\n  a:\n    script: x\n    error_mapping:\n      '0': -32603\n": (
        "tools.a.error_mapping.0",
        5,
        "is not an exit code of a failure",
    ),
    "tools:\n  a:\n    script: x\n    error_mapping:\n      '1': {code: 1, detail: {a: 1}}\n": (
        "tools.a.error_mapping.1",
        5,
        "an object needs the error profile",
    ),
    "tools:\n  a:\n    script: x\n    caching: {key_template: all}\n": (
        "tools.a.caching.key_template",
        4,
        "does not distinguish calls",
    ),
    "tools:\n  a:\n    script: echo {{n}}\n    parameters: [{name: n, type: integer}]\n    examples: [{n: x}]\n": (
        "tools.a.examples[0]",
        5,
        "expected integer",
    ),
    "tools:\n  a:\n    script: x\n  a:\n    script: y\n": ("", 4, "has the key 'a' twice"),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_is_reported_with_file_line_key_and_fix(tmp_path: Path, text: str) -> None:
    key, line, says = WRONG[text]

    with pytest.raises((ConfigError, ConfigErrors)) as caught:
        declared(tmp_path, text)

    problem = caught.value.problems[0] if isinstance(caught.value, ConfigErrors) else caught.value
    assert isinstance(problem, ConfigError)
    assert (problem.source, problem.key, problem.line) == (str(tmp_path / "tools.yaml"), key, line)
    assert says in problem.problem
    assert problem.fix


def test_all_mistakes_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as caught:
        declared(tmp_path, "tools:\n  a: {script: 'eval {{x}}'}\n  b: {scrip: y}\n  c: {script: 'echo {{'}\n")

    assert {problem.key.split(".")[1] for problem in caught.value.problems} == {"a", "b", "c"}


def test_an_object_as_detail_is_fine_in_the_other_profile(tmp_path: Path) -> None:
    path = tmp_path / "tools.yaml"
    path.write_text("a:\n  script: x\n  error_mapping:\n    '1': {code: 1, detail: {a: 1}}\n")

    assert read_definitions(path, profile="extended-json")[0].errors.meanings[1].detail == {"a": 1}
