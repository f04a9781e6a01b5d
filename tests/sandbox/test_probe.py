"""Each mechanism is tried; a missing one is reported with its reason and remedy."""

from toolreeve.sandbox.probe import TRIALS, examine


def test_every_mechanism_is_tried_and_reported() -> None:
    mechanisms, version = examine()

    assert [each.name for each in mechanisms] == [name for name, *_ in TRIALS]
    assert all(each.use and each.remedy for each in mechanisms)
    assert isinstance(version, int)


def test_what_works_here_has_no_problem() -> None:
    found = {each.name: each.problem for each in examine()[0]}

    assert found["pidfd"] == ""
    assert found["seccomp"] == ""
