"""What a session keeps of its results, and forgets."""

from toolreeve.core.labels import Confidentiality, Integrity, Labels
from toolreeve.policy.flow.memory import MOST_RESULTS, KeptResult, SessionMemory
from toolreeve.policy.flow.sources import ToolSource


def result(number: int, *, foreign: bool, of_files: bool = False) -> KeptResult:
    integrity = Integrity.UNTRUSTED if foreign else Integrity.TRUSTED
    source = ToolSource(Labels(integrity, Confidentiality.PUBLIC), of_files=of_files)
    return KeptResult(str(number), "fetch", {}, f"text {number}", source, own=False, at=0.0)


def test_results_of_strangers_are_counted_until_they_are_forgotten() -> None:
    memory = SessionMemory()
    memory.keep(result(0, foreign=True))
    memory.keep(result(1, foreign=True, of_files=True))
    memory.keep(result(2, foreign=False))
    counted = memory.foreign_count
    for number in range(MOST_RESULTS):
        memory.keep(result(number, foreign=False))

    assert (counted, memory.foreign_count, len(memory.results)) == (1, 0, MOST_RESULTS)
    assert memory.has_read_untrusted


def test_a_repeated_call_adds_nothing_to_what_stands_for_the_words_of_the_user() -> None:
    memory = SessionMemory()
    source = ToolSource(Labels(Integrity.TRUSTED, Confidentiality.PUBLIC))
    for path in ("notes.md", "a.py", "notes.md", "a.py"):
        memory.keep(KeptResult("1", "read_file", {"path": path}, "text", source, own=False, at=0.0))

    assert memory.exact == "\nnotes.md\na.py"
