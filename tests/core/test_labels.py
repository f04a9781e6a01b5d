"""The names of labels, and that each exists once."""

import re
from pathlib import Path

import toolreeve
from toolreeve.core import labels

SOURCE = Path(toolreeve.__file__).parent


def test_labels_are_the_words_that_results_show() -> None:
    assert [*labels.Integrity] == ["user", "trusted", "untrusted"]
    assert [*labels.Confidentiality] == ["public", "workspace", "private", "secret"]
    assert type(labels.UNTRUSTED[0]) is str


def test_no_other_module_defines_what_is_untrusted() -> None:
    defines = re.compile(r"^\s*UNTRUSTED\b.*=", re.MULTILINE)

    defined = {path.name for path in SOURCE.rglob("*.py") if defines.search(path.read_text())}

    assert defined == {"labels.py"}
