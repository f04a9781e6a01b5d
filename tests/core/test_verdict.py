from toolreeve.core.verdict import Decision, Verdict


def test_a_reason_says_only_once_that_there_is_no_undo() -> None:
    asked = Verdict(Decision.ASK, "default", "its effect cannot be undone")

    assert asked.without_undo("it uses the network") == asked
    assert (
        Verdict(Decision.ASK, "default", "HIGH").without_undo("it sends").reason == "HIGH; cannot be undone: it sends"
    )
