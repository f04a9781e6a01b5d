"""Rules about one path, against effects that reach many."""

import pytest

from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.policy.path_overlap import may_touch

ROOT = "/project"


def read(target: str, reach: Reach) -> Effect:
    return Effect(EffectKind.READ, target, reach)


@pytest.mark.parametrize(
    ("effect", "condition"),
    [
        (read("/project", Reach.BELOW), {"equals": "/project/.env"}),
        (read("/project", Reach.BELOW), {"glob": ".env"}),
        (read("/project/src", Reach.BELOW), {"glob": "**/.env"}),
        (read("/project", Reach.BELOW), {"under": "secrets"}),
        (read("/project/secrets/deep", Reach.BELOW), {"under": "secrets"}),
        (read("/project/.e*", Reach.MATCHING), {"equals": "/project/.env"}),
        (read("/project/*/key", Reach.MATCHING), {"under": "secrets"}),
        (read("/project/**/x", Reach.MATCHING), {"glob": "a/b/*"}),
        (read("/project/a", Reach.BELOW), {"regex": ".*"}),
    ],
)
def test_what_could_be_touched_is_suspected(effect: Effect, condition: dict[str, str]) -> None:
    assert may_touch(effect, condition, ROOT)


@pytest.mark.parametrize(
    ("effect", "condition"),
    [
        (read("/project/src", Reach.BELOW), {"equals": "/project/.env"}),
        (read("/project/src", Reach.BELOW), {"glob": ".env"}),
        (read("/project/src", Reach.BELOW), {"under": "secrets"}),
        (read("/project/*.py", Reach.MATCHING), {"glob": "**/.env"}),
        (read("/project", Reach.NAMES), {"glob": "**/.env"}),
    ],
)
def test_what_cannot_be_touched_is_not(effect: Effect, condition: dict[str, str]) -> None:
    assert not may_touch(effect, condition, ROOT)
