import base64
import hashlib
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolreeve.core import json as core_json
from toolreeve.core.secrets.patterns import is_secret_name
from toolreeve.core.secrets.redactor import MARK, Redactor
from toolreeve.core.snapshot import HEAD

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n+/=\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "name",
    [
        "password", "PASSWORD", "passwd", "db_password", "passwordConfirmation", "password_hash", "pass", "token",
        "access_token", "authToken", "X-Auth-Token", "api_key", "apiKey", "APIKey", "apikey", "OPENAI_API_KEY",
        "secret", "client_secret", "secretKey", "Authorization", "proxy-authorization", "cookie", "Set-Cookie",
        "private_key", "credential", "credentials", "aws_secret_access_key", "jwt",
    ],
)  # fmt: skip
def test_a_value_under_a_secrets_name_is_redacted(name: str) -> None:
    assert Redactor().value({name: "hunter2"}) == {name: MARK}


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens", "tokens_used", "token_count", "tokenCount", "max_token", "secretary", "keyword", "key", "monkey",
        "passenger", "bypass", "pass_rate", "author", "cookie_name", "path", "api", "private", "token_type", "tokens",
    ],
)  # fmt: skip
def test_a_value_under_a_harmless_name_stays(name: str) -> None:
    assert Redactor().value({name: "hunter2"}) == {name: "hunter2"}


def test_everything_under_a_secrets_name_is_redacted_except_booleans_and_empty_values() -> None:
    value = {"password": True, "token": None, "secret": "", "credentials": {"user": "a"}, "pwd": 1234, "cookies": ["x"]}

    assert Redactor().value(value) == {
        "password": True,
        "token": None,
        "secret": "",
        "credentials": MARK,
        "pwd": MARK,
        "cookies": MARK,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use sk-proj-abcdefghijklmnop1234 now", "use [redacted] now"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", MARK),
        ("github_pat_11ABCDEFG0abcdefghijkl_mnop", MARK),
        ("xoxb-123456789012-abcdefghij", MARK),
        ("key AKIAIOSFODNN7EXAMPLE.", "key [redacted]."),
        ("AIzaSyA1234567890abcdefghijklmnopqrstuv", MARK),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_123", MARK),
        (f"before {PEM} after", "before [redacted] after"),
        (PEM[:60], MARK),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [redacted]"),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNz' x", "curl -H 'Authorization: Basic [redacted]' x"),
        ("bearer abcdefgh12345678", "bearer [redacted]"),
        ("Cookie: sid=1; theme=dark\nHost: x", "Cookie: [redacted]\nHost: x"),
        ("echo 'password: s3cr3tPass9'", "echo 'password: [redacted]'"),
        ("the token: authentication goes on", "the token: authentication goes on"),
        ("X-Api-Key: 12345", "X-Api-Key: [redacted]"),
        ("postgres://app:hunter2@db:5432/x", "postgres://app:[redacted]@db:5432/x"),
        ("https://:hunter2@h/", "https://:[redacted]@h/"),
        ("DB_PASSWORD=hunter2 run", "DB_PASSWORD=[redacted] run"),
        ("https://x/?api_key=abc&page=2", "https://x/?api_key=[redacted]&page=2"),
        ("DB_PASSWORD=h\ud800unter2 run", "DB_PASSWORD=[redacted] run"),
        ("password=pässwört!", "password=[redacted]"),
        ("mysql --password hunter2 -h db", "mysql --password [redacted] -h db"),
        ('{"password": "hunter2", "n": 1}', '{"password": "[redacted]", "n": 1}'),
        ('{\\"password\\": \\"hunter2\\"}', '{\\"password\\": \\"[redacted]\\"}'),
    ],
)
def test_what_looks_like_a_secret_is_redacted(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "task-management-system-overview",
        "the token: a word",
        "/api_key: is missing",
        "https://example.com/a@b:c",
        "mail ada@example.com",
        "max_tokens=4096 is fine? no: a number",
        "risk-assessment-of-the-year",
        "ordinary text with a key idea",
        "git@github.com:owner/repo.git",
        "2024-01-01T10:00:00Z",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor().text(text) == text


SECRET = 'p@ss/wörd+"1"\n\\x'


@pytest.mark.parametrize(
    "spelled",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(SECRET))[1:-1],
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        SECRET.encode().hex(),
    ],
    ids=[
        "plain",
        "json",
        "json in unicode",
        "json in json",
        "url",
        "url safe",
        "url lower",
        "form",
        "base64",
        "base64url",
        "hex",
    ],
)
def test_a_registered_secret_is_redacted_in_every_encoding(spelled: str) -> None:
    cleaned = Redactor([SECRET]).text(spelled)

    assert cleaned.strip('\\"=') == MARK


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
def test_a_registered_secret_is_found_inside_longer_base64(before: str) -> None:
    encoded = base64.b64encode(f"{before}{SECRET}:and more".encode()).decode()

    cleaned = Redactor([SECRET]).text(encoded)

    surroundings = base64.b64encode(f"{before}:and more".encode())
    assert MARK in cleaned
    assert len(cleaned.replace(MARK, "")) <= len(surroundings) + 4


def test_a_registered_number_is_redacted_as_a_number_too() -> None:
    assert Redactor(["12345678"]).value({"pin": 12345678, "other": 87654321}) == {"pin": MARK, "other": 87654321}


def test_a_secret_with_a_newline_at_its_end_is_found_without_it() -> None:
    assert Redactor(["s3cretvalue\n"]).text("it is s3cretvalue.") == "it is [redacted]."


def test_secrets_that_would_match_by_chance_are_ignored() -> None:
    assert Redactor(["a", "abc", ""]).text("abcabc") == "abcabc"


def test_a_secret_across_the_place_where_a_long_text_is_cut_does_not_survive_in_part() -> None:
    secret = "0123456789abcdef" * 4
    text = "-" * (HEAD - 10) + secret + "-" * 5_000

    cut = Redactor([secret]).value({"content": text})["content"]

    assert "0123" not in cut["cut"]
    assert "sha256" not in cut


def test_a_cut_text_without_secrets_has_a_digest() -> None:
    text = "an ordinary line\n" * 500

    cut = Redactor(["s3cretvalue"]).value({"content": text})["content"]

    assert cut == {"cut": text[:HEAD], "length": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize("times", [256, 6_000])
def test_a_long_secret_across_the_cut_is_redacted_whole(times: int) -> None:
    """It is far longer than what is shown of the text."""
    secret = "0123456789abcdef" * times
    text = "-" * (HEAD - 10) + secret + "-" * 5_000

    cut = Redactor([secret]).value({"content": text})["content"]

    assert cut["cut"] == "-" * (HEAD - 10) + MARK
    assert cut["length"] == len(text)


def test_an_integer_of_more_than_64_bits_is_described() -> None:
    redactor = Redactor()

    assert redactor.value(2**64 - 1) == 2**64 - 1
    assert redactor.value(2**64) == "<integer of 65 bits>"


@pytest.mark.parametrize("text", ["x-api-key: none", "--password null", "Authorization: Bearer abcdefghijklmnop"])
def test_a_firm_label_is_enough_for_any_value(text: str) -> None:
    assert MARK in Redactor().text(text)


def test_more_secrets_than_one_automaton_takes_are_found_too() -> None:
    secrets = [f"{number:05}-{'x' * 200}-{number:05}" for number in range(200)]
    redactor = Redactor(secrets)

    assert redactor.text(f"a {secrets[0]} b {secrets[-1]} c") == "a [redacted] b [redacted] c"
    assert not redactor.suspects(b'{"nothing":"here"}')


def test_many_secrets_are_looked_for_at_once() -> None:
    secrets = [f"secret-number-{number:05}-xyz" for number in range(2_000)]

    assert Redactor(secrets).text(f"a {secrets[1234]} b") == "a [redacted] b"


@pytest.mark.parametrize(
    "text", ["eyJ" * 300_000, "-----BEGIN " * 100_000, "://" * 300_000, "password" * 100_000, "sk-" * 300_000]
)
@pytest.mark.timeout(60)
def test_a_secret_after_a_hostile_text_is_redacted_in_time(text: str) -> None:
    """Each takes milliseconds; an expression that goes back and forth would take hours."""
    assert Redactor(["s3cretvalue"]).text(f"{text} s3cretvalue.").endswith(" [redacted].")


plain_text = st.text(st.characters(), max_size=30)
secrets = st.text(st.characters(), min_size=6, max_size=24).filter(lambda secret: secret.strip() == secret)
places = st.sampled_from(["value", "key", "list", "json", "deep"])


def hide(secret: str, before: str, after: str, place: str) -> dict[str, Any]:
    text = before + secret + after
    match place:
        case "key":
            return {text: 1}
        case "list":
            return {"items": [1, text]}
        case "json":
            return {"document": json.dumps({"inner": text})}
        case "deep":
            return {"a": {"b": [{"c": text}]}}
        case _:
            return {"text": text}


@given(secret=secrets, before=plain_text, after=plain_text, place=places)
def test_no_registered_secret_survives_in_the_written_bytes(secret: str, before: str, after: str, place: str) -> None:
    assume(secret not in MARK and MARK not in before + after)
    redactor = Redactor([secret])
    args = hide(secret, before, after, place)
    written = core_json.dumps(args)

    assert redactor.suspects(written)
    cleaned = redactor.value(args)

    shown = core_json.dumps(cleaned)
    read = json.loads(shown)
    assert secret not in str(list(walk(read)))
    assert json.dumps(secret)[1:-1].encode() not in shown


def walk(value: Any) -> Any:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from walk(item)
    else:
        yield value


pieces = """
    pass word token api key _ - = : " \\ :// @ sk- gh p_ eyJ . bearer Authorization cookie s3cret value AKIA ü
    xxxxxxxxxxxxxxxx AAAAAAAAAAAAAAAA 012345678901234567890123456789
""".split()
fragments = st.lists(st.sampled_from([*pieces, " ", "\n"]), max_size=8).map("".join)
numbers = st.integers(-(2**63), 2**64 - 1)


@given(
    st.recursive(
        fragments | numbers | st.none(),
        lambda inner: st.dictionaries(fragments, inner, max_size=3) | st.lists(inner, max_size=3),
        max_leaves=6,
    )
)
def test_a_document_that_is_not_suspected_needs_no_redaction(value: Any) -> None:
    redactor = Redactor(["s3cretvalue"])
    document = {"value": value}
    assume(not redactor.suspects(core_json.dumps(document)))

    assert redactor.value(document) == document


@given(st.text())
def test_any_name_can_be_checked_for_being_a_secrets(name: str) -> None:
    assert is_secret_name(name) in (True, False)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("a hunter2-hunter2 b", True),
        (base64.b64encode(b"hunter2-hunter2").decode(), True),
        (f"key: {PEM}", True),
        ("password=correct horse", False),
        ("plain words", False),
    ],
)
def test_a_text_is_known_to_hold_a_secret_by_its_value_or_its_shape_not_by_the_words_around(
    text: str, known: bool
) -> None:
    assert Redactor(["hunter2-hunter2"]).knows(text) is known


def test_without_registered_secrets_only_the_shape_tells() -> None:
    assert Redactor().knows(PEM)
    assert not Redactor().knows("password=correct horse")
