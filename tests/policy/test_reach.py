"""Rules about one path, against effects that reach many."""

import pytest

from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.policy.reach import may_touch

ROOT = "/work"


def read(target: str, reach: Reach) -> Effect:
    return Effect(EffectKind.READ, target, reach)


@pytest.mark.parametrize(
    ("effect", "condition"),
    [
        (read("/work", Reach.BELOW), {"equals": "/work/.env"}),
        (read("/work", Reach.BELOW), {"glob": ".env"}),
        (read("/work/src", Reach.BELOW), {"glob": "**/.env"}),
        (read("/work", Reach.BELOW), {"under": "secrets"}),
        (read("/work/secrets/deep", Reach.BELOW), {"under": "secrets"}),
        (read("/work/.e*", Reach.MATCHING), {"equals": "/work/.env"}),
        (read("/work/*/key", Reach.MATCHING), {"under": "secrets"}),
        (read("/work/**/x", Reach.MATCHING), {"glob": "a/b/*"}),
        (read("/work/a", Reach.BELOW), {"regex": ".*"}),
    ],
)
def test_what_could_be_touched_is_suspected(effect: Effect, condition: dict[str, str]) -> None:
    assert may_touch(effect, condition, ROOT)


@pytest.mark.parametrize(
    ("effect", "condition"),
    [
        (read("/work/src", Reach.BELOW), {"equals": "/work/.env"}),
        (read("/work/src", Reach.BELOW), {"glob": ".env"}),
        (read("/work/src", Reach.BELOW), {"under": "secrets"}),
        (read("/work/*.py", Reach.MATCHING), {"glob": "**/.env"}),
        (read("/work", Reach.NAMES), {"glob": "**/.env"}),
    ],
)
def test_what_cannot_be_touched_is_not(effect: Effect, condition: dict[str, str]) -> None:
    assert not may_touch(effect, condition, ROOT)
