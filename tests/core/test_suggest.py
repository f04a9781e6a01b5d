"""The one "did you mean"."""

import pytest

from toolreeve.core.suggest import did_you_mean, find_similar, hint_similar

KNOWN = ("read_file", "write_file", "list_directory")


def test_the_most_similar_names_come_first() -> None:
    assert find_similar("read_fil", KNOWN) == ["read_file", "write_file"]
    assert find_similar("read_fil", KNOWN, limit=1) == ["read_file"]
    assert find_similar("zzz", KNOWN) == []


@pytest.mark.parametrize("word", [None, 3, ["read_file"]])
def test_a_word_that_is_not_text_resembles_nothing(word: object) -> None:
    assert find_similar(word, KNOWN) == []


def test_known_values_that_are_not_text_are_ignored() -> None:
    assert find_similar("read_fil", [1, None, "read_file"]) == ["read_file"]


def test_a_huge_word_is_compared_by_its_beginning() -> None:
    assert find_similar("x" * 10_000_000, KNOWN) == []


def test_the_question_names_what_was_found() -> None:
    assert did_you_mean([]) == ""
    assert did_you_mean(["a"]) == "did you mean 'a'?"
    assert did_you_mean(["a", "b"]) == "did you mean 'a', 'b'?"


def test_a_hint_is_a_remark_in_brackets_or_nothing() -> None:
    assert hint_similar("read_fil", KNOWN) == " (did you mean 'read_file'?)"
    assert hint_similar("zzz", KNOWN) == ""
