"""Parameters that carry authority: declared in schemas, or guessed from names.

What an untrusted server declares may add authority, never remove it. An unknown verb is a write, unless the operator
rates the server's tool LOW or SAFE; an unknown parameter of a payment is its counterparty, and a tool without a schema
has authority in every text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind
from toolreeve.core.labels import Authority
from toolreeve.core.tool import ToolSpec

TEXT = "text"
LABEL = "label"
WHEN = "when"
READS = frozenset((EffectKind.READ, EffectKind.NET))
_READ = frozenset(
    "get list read search find check fetch lookup show describe count view download retrieve query_only".split()
)
_VERBS = {
    verb: effect
    for effect, verbs in {
        EffectKind.SEND: "send post invite share reply forward publish notify message email submit upload tweet add",
        EffectKind.DELETE: "delete remove cancel purge drop revoke kick unshare clear",
        EffectKind.SPEND: "pay reserve book buy purchase order transfer refund subscribe",
    }.items()
    for verb in verbs.split()
}
_WRITE = frozenset(
    "create update set edit append write insert put modify rename move merge push commit schedule reschedule make save "
    "run execute".split()
)
_MONEY = frozenset(("money", "transaction", "payment", "transfer", "invoice"))
_IDENTITY = frozenset(("info", "profile", "account", "settings", "password"))
_URLS = frozenset(("url", "uri", "link", "host"))
_NAMES: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (kind, frozenset(listed.split()))
    for kind, listed in (  # the first that matches a word of the parameter's name
        (
            Authority.CREDENTIAL,
            "password passwd secret token credential credentials key permission permissions role scope",
        ),
        (WHEN, "date time day start end deadline recurring"),
        (Authority.AMOUNT, "amount price total sum quantity"),
        (Authority.OBJECT, "id ids path"),
        (Authority.COMMAND, "command cmd script code sql shell"),
        (
            Authority.DESTINATION,
            "recipient recipients to cc bcc email emails mail url uri link host domain webhook iban account "
            "participants attendees user users channel channels phone member members",
        ),
        (LABEL, "title subject name filename"),
    )
)
_PROSE = frozenset("body content text message description location query note comment".split())
MOST_DEPTH = 12
MOST_LEAVES = 2_000


@dataclass(frozen=True, slots=True)
class ParameterAuthority:
    """`kind` is an `Authority`, or text, label or when; only a `closed` namespace resolves names."""

    kind: str
    guessed: bool = True
    closed: bool | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of the arguments with the authority of the nearest name."""

    path: str
    key: str
    kind: str
    value: Any
    closed: bool | None = None


class TooManyValues(Exception):
    """The arguments are too deep or too many to look at each: nobody vouches for them."""


@dataclass(frozen=True, slots=True)
class ToolAuthority:
    """`effect` is what calls of the tool do. `identity`: it changes a credential or a profile."""

    name: str
    effect: EffectKind
    parameters: Mapping[str, ParameterAuthority] = field(default_factory=dict)
    identity: bool = False
    guessed: bool = True
    declared: bool = True

    @property
    def reads(self) -> bool:
        return self.effect in READS

    @property
    def goes_out(self) -> bool:
        return self.effect in (EffectKind.SEND, EffectKind.SPEND)

    @property
    def leaves_machine(self) -> bool:
        """Whether the values of a call reach a third party, even by a request that only reads."""
        return self.effect in (EffectKind.SEND, EffectKind.SPEND, EffectKind.NET)

    def leaves(self, args: Mapping[str, Any]) -> Iterator[Leaf]:
        """Raises TooManyValues."""
        count = 0
        for name, value in args.items():
            parameter = self.parameters.get(name) or ParameterAuthority(self._unknown(name))
            for leaf in _walk(name, name, parameter, value, self.effect, 1):
                count += 1
                if count > MOST_LEAVES:
                    raise TooManyValues
                yield leaf

    def _unknown(self, name: str) -> str:
        """A parameter that the schema does not name: without a schema every text is authority."""
        return guess_kind(name, {}, self.effect) if self.declared else Authority.DESTINATION


def authority_of(spec: ToolSpec, declared: Mapping[str, Mapping[str, str]] | None = None) -> ToolAuthority:
    """`declared` is what the configuration says about parameters, by any name of the tool: kind, or kind/closed."""
    names = name_words(spec.name.rsplit("__", 1)[-1] if spec.server else spec.name)
    properties = spec.input.get("properties")
    effect = _effect(spec, names, properties)
    known = properties if isinstance(properties, Mapping) else {}
    parameters = {name: _parameter(name, schema, effect, spec) for name, schema in known.items()}
    identity = effect is EffectKind.WRITE and bool(_IDENTITY & set(names))
    if identity:
        parameters = dict.fromkeys(parameters, ParameterAuthority(Authority.CREDENTIAL))
    for name, text in (declared or {}).get(spec.name, {}).items():
        parameters[name] = read_parameter(text)
    has_schema = bool(known) or spec.input.get("additionalProperties") is False or spec.server is None
    return ToolAuthority(spec.name, effect, parameters, identity, spec.server is not None, has_schema)


def read_parameter(text: str) -> ParameterAuthority:
    """`destination/closed` of a configuration. Raises ValueError."""
    kind, _, namespace = text.partition("/")
    if namespace not in ("", "open", "closed"):
        raise ValueError(f"{namespace!r} is no namespace: write open or closed")
    closed = namespace == "closed" if namespace else None
    known = Authority(kind)
    return ParameterAuthority(TEXT if known is Authority.NONE else known, guessed=False, closed=closed)


def _effect(spec: ToolSpec, names: list[str], properties: Any) -> EffectKind:
    verb = next((word for word in names if word in _READ or word in _VERBS or word in _WRITE), "")
    if verb in _READ or (spec.read_only and spec.trusted):
        urls = any(_URLS & set(name_words(key)) for key in (properties or {}))
        return EffectKind.NET if urls else EffectKind.READ
    if _MONEY & set(names):
        return EffectKind.SPEND
    if not verb and spec.server is not None and spec.danger.rank <= DangerLevel.LOW.rank:
        return EffectKind.READ  # no word says that it changes anything, and the operator rated it
    return _VERBS.get(verb, EffectKind.WRITE)


def _parameter(name: str, schema: Any, effect: EffectKind, spec: ToolSpec) -> ParameterAuthority:
    schema = schema if isinstance(schema, Mapping) else {}
    guessed = ParameterAuthority(guess_kind(name, schema, effect))
    written = schema.get("x-authority")
    if written not in tuple(Authority):
        return guessed
    removes = written == Authority.NONE and guessed.kind not in (TEXT, LABEL, WHEN)
    if removes and not spec.trusted:
        return guessed
    namespace = schema.get("x-namespace")
    closed = namespace == "closed" if spec.trusted and namespace in ("open", "closed") else None
    return ParameterAuthority(TEXT if written == Authority.NONE else written, guessed=False, closed=closed)


def guess_kind(name: str, schema: Mapping[str, Any], effect: EffectKind) -> str:
    """The authority that a parameter's name suggests."""
    found = set(name_words(name))
    for kind, listed in _NAMES:
        if found & listed:
            return str(kind)
    is_text = bool(found & _PROSE) or schema.get("type") not in (None, "string")
    return Authority.COUNTERPARTY if effect is EffectKind.SPEND and not is_text else TEXT


def name_words(name: str) -> list[str]:
    """`slackPost_message` as slack, post, message."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()) or [""]


def _walk(
    path: str, key: str, parameter: ParameterAuthority, value: Any, effect: EffectKind, depth: int
) -> Iterator[Leaf]:
    """Inside a text parameter the names decide again: `attachments[].file_id` is an object."""
    if depth > MOST_DEPTH:
        raise TooManyValues
    if isinstance(value, Mapping):
        for name, inner in value.items():
            nested = parameter
            if parameter.kind not in (Authority.DESTINATION, Authority.CREDENTIAL) and parameter.guessed:
                nested = ParameterAuthority(guess_kind(str(name), {}, effect))
            yield from _walk(f"{path}.{name}", str(name), nested, inner, effect, depth + 1)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _walk(f"{path}[{index}]", key, parameter, inner, effect, depth + 1)
    elif value is not None and value != "" and not isinstance(value, bool):
        yield Leaf(path, key, parameter.kind, value, parameter.closed)
