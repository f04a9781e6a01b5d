"""Does a rule do what its author thinks? The calls under `matches` and `not_matches` are tried when a file is read."""

from collections.abc import Mapping
from typing import Any, Protocol

from toolreeve.core.action import Action
from toolreeve.core.call import Principal, Role
from toolreeve.core.documents import Document
from toolreeve.core.errors import ConfigError
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import Matcher


class ActionBuilder(Protocol):
    """Makes the action that a call would be, without running anything."""

    def __call__(
        self, tool: str, args: Mapping[str, Any], *, root: str, principal: Principal, session: str, origin: str
    ) -> Action: ...


def failing_examples(
    document: Document, matchers: Mapping[int, Matcher], root: str, build_action: ActionBuilder
) -> list[ConfigError]:
    problems = []
    for index, matcher in matchers.items():
        for key, expected in (("matches", True), ("not_matches", False)):
            for number, example in enumerate(document.value["rules"][index].get(key, [])):
                if _matches(matcher, example, root, build_action) is not expected:
                    problems.append(_failure(document, matcher, (index, key, number), example))
    return problems


def _matches(matcher: Matcher, example: Mapping[str, Any], root: str, build_action: ActionBuilder) -> bool:
    """An example is tried before the rule expires."""
    principal = Principal(user=example.get("user", "local"), role=Role(example.get("role", "operator")))
    action = build_action(
        example["tool"],
        example.get("args", {}),
        root=root,
        principal=principal,
        session=example.get("session", "default"),
        origin=example.get("origin", "python"),
    )
    mode = PermissionMode(example.get("mode", "default"))
    return matcher.may_concern(action, mode) and matcher.matches(action, lambda: 0.0)


def _failure(
    document: Document, matcher: Matcher, place: tuple[int, str, int], example: Mapping[str, Any]
) -> ConfigError:
    index, key, number = place
    does = "does not match" if key == "matches" else "matches"
    shown = f"{example['tool']} {example.get('args', {})}"
    return document.error(
        f"the rule {matcher.rule.label!r} {does} this example: {shown:.200}",
        path=("rules", index, key, number),
        fix="correct the rule or the example",
    )
