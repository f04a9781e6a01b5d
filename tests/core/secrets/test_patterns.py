"""The share of known shapes of secrets that is found, and of ordinary lines taken for one; both are printed."""

import random

import pytest

from tests.core.secrets.ordinary_output import lines, printed
from tests.core.secrets.secret_samples import samples
from toolreeve.core import json as core_json
from toolreeve.core.secrets.patterns import is_value
from toolreeve.core.secrets.redactor import MARK, Redactor


def test_nearly_all_known_shapes_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    redactor = Redactor()
    found = {sample: sample.is_found(redactor) for seed in range(5) for sample in samples(random.Random(seed))}
    share = sum(found.values()) / len(found)
    with capsys.disabled():
        print(f"\n{share:.1%} of {len(found) // 5} shapes found", end="")

    assert len(found) // 5 >= 150
    assert share >= 0.95, [sample.name for sample, is_found in found.items() if not is_found]


def test_every_known_shape_is_suspected_in_a_document_too() -> None:
    redactor = Redactor()

    missed = [each.name for each in samples(random.Random(9)) if not redactor.suspects(core_json.dumps([each.text]))]

    assert missed == []


def test_hardly_any_line_of_ordinary_output_is_taken_for_a_secret(capsys: pytest.CaptureFixture[str]) -> None:
    redactor = Redactor()
    ordinary = list(lines())
    changed = [line for line in ordinary if redactor.text(line) != line]
    with capsys.disabled():
        print(
            f"\n{len(changed)} of {len(ordinary):,} ordinary lines ({len(changed) / len(ordinary):.3%}) redacted",
            end="",
        )

    assert len(ordinary) >= 10_000
    assert len(changed) <= len(ordinary) / 1_000, changed[:50]


def test_nothing_that_commands_print_is_taken_for_a_secret() -> None:
    redactor = Redactor()

    assert [text for text in printed(random.Random(5)) if redactor.text(text) != text] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the \\nghp_" + "a1B2" * 9, f"the {MARK}"),
        ("docker login -u ada -p hunter2 r.example", f"docker login -u ada -p {MARK} r.example"),
        ("curl \\\n  -u ada:hunter2 https://x", f"curl \\\n  -u ada:{MARK} https://x"),
        ("a:\n  password: hunter2\n  user: ada", f"a:\n  password: {MARK}\n  user: ada"),
        ('token = "abc123"  # why', f'token = "{MARK}"  # why'),
        ("DB_PASSWORD=secret", f"DB_PASSWORD={MARK}"),
        ("password=correcthorse", f"password={MARK}"),
    ],
)
def test_only_the_value_goes(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "password=self.password,",
        "    token: str",
        "secret: Optional[str]",
        "token = get_token()",
        "password: ${DB_PASSWORD}",
        "password: {{ vault.password }}",
        "password: <your password>",
        "password: null",
        "password=********",
        "api_key=$API_KEY",
        "OLDPWD=/home/ada",
        'accesskey="n"',
        "getpass(prompt='Password: ', stream=None)",
        "Authorization: Bearer ${TOKEN}",
        "mkdir -p build/out && cp -p a b",
        "sha512-" + "aB3+" * 21 + "xQ==",
    ],
)
def test_code_placeholders_and_paths_are_left_alone(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(("name", "value"), [("PASSWORD=", "monkey"), ("password=", "hunter2"), ("pwd=", "tr0ub4dor")])
def test_what_may_be_a_value_is_one(name: str, value: str) -> None:
    assert is_value(name, value)


HOSTILE = [
    "sk-" * 100_000, "curl -u a" * 50_000, "mysql " * 100_000, "login a password " * 30_000, "password: " * 50_000,
    "A" * 500_000, "0" * 500_000 + "-us", "eyJ." * 100_000, "://a:" * 100_000, "\\" * 300_000 + "nghp_",
    "<password>" * 50_000,
    ("password" + " " * 1_000) * 500, "--token " * 50_000, "-----BEGIN PRIVATE KEY-----" * 20_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.timeout(60)
def test_what_follows_a_hostile_text_is_redacted_in_time(text: str) -> None:
    """Each takes milliseconds; an expression that goes back and forth would take hours."""
    found = Redactor().text(f"{text}\n\nghp_{'a1B2' * 9}\n")

    assert "a1B2" not in found
    assert "[redacted]" in found
