from tests.policy.shell.world import judged
from toolreeve.policy.shell import compiling, specs


def test_every_example_in_the_specifications_holds() -> None:
    assert compiling.broken_examples() == []


def test_the_compiled_specifications_are_those_of_the_yaml_files() -> None:
    assert compiling.COMPILED.read_text() == compiling.text()


def test_agents_find_most_of_their_programs_specified() -> None:
    assert len(specs.names()) >= 300


def test_every_family_has_examples_of_both_kinds() -> None:
    kinds = {(place.partition(":")[0], known) for place, _, known in compiling.examples()}

    assert kinds >= {(family, known) for family in compiling.families() for known in (True, False)}


def test_a_flag_is_known_by_its_full_name_only() -> None:
    assert judged("sort --reverse x").known
    assert not judged("sort --rev x").known


def test_clustered_flags_and_values_are_told_apart() -> None:
    assert judged("head -qn5 x").known
    assert not judged("head -qZn5 x").known
    assert judged("sort -k2,2 -t: --key=1 x").known


def test_after_two_dashes_everything_is_an_operand() -> None:
    assert [str(effect) for effect in judged("cat -- --version").effects][-1] == "read:/project/--version"
