import pytest

from toolreeve.core.effects import Effect, EffectKind, Reach


@pytest.mark.parametrize(
    ("target", "reach", "path", "touched"),
    [
        ("/w/.env", Reach.EXACT, "/w/.env", True),
        ("/w", Reach.EXACT, "/w/.env", False),
        ("/w", Reach.BELOW, "/w/.env", True),
        ("/w", Reach.BELOW, "/w", True),
        ("/w", Reach.BELOW, "/ww/.env", False),
        ("/", Reach.BELOW, "/etc/shadow", True),
        ("/w", Reach.NAMES, "/w/.env", False),
        ("/w/.e*", Reach.MATCHING, "/w/.env", True),
        ("/w/*", Reach.MATCHING, "/w/a/b", False),
        ("/w/**", Reach.MATCHING, "/w/a/b", True),
    ],
)
def test_an_effect_touches_a_path_as_far_as_it_reaches(target: str, reach: Reach, path: str, touched: bool) -> None:
    assert Effect(EffectKind.READ, target, reach).touches(path) is touched


def test_an_effect_reaches_only_its_target_unless_it_says_more() -> None:
    assert Effect(EffectKind.WRITE, "/w/x") == Effect(EffectKind.WRITE, "/w/x", Reach.EXACT)
