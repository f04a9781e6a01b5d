"""Is each mechanism tried, and one that is missing told with its reason and its remedy?"""

from toolreeve.sandbox.probe import TRIALS, examine


def test_every_mechanism_is_tried_and_told() -> None:
    mechanisms, version = examine()

    assert [each.name for each in mechanisms] == [name for name, *_ in TRIALS]
    assert all(each.use and each.remedy for each in mechanisms)
    assert isinstance(version, int)


def test_what_works_here_has_no_problem() -> None:
    found = {each.name: each.problem for each in examine()[0]}

    assert found["pidfd"] == ""
    assert found["seccomp"] == ""
