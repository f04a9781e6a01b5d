"""The policy file: what is watched, saved and refused."""

import threading
from pathlib import Path

import pytest

from tests.world import World
from toolreeve.config.sections.policy import Policy
from toolreeve.core.errors import ConfigErrors
from toolreeve.runtime.policy_file import StalePolicy, save_rules, version_of

DENY = "rules:\n  - {id: never, tool: calculate, decision: deny}\n"


def test_of_two_people_who_edit_one_version_the_first_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    refused: list[str] = []

    def save(text: str) -> None:
        try:
            save_rules(path, text, version=version_of(""), root=str(tmp_path))
        except StalePolicy:
            refused.append(text)

    texts = [DENY.replace("never", f"never-{number}") for number in range(8)]
    people = [threading.Thread(target=save, args=(text,)) for text in texts]
    for each in people:
        each.start()
    for each in people:
        each.join()

    assert len(refused) == 7
    assert sorted([path.read_text(), *refused]) == sorted(texts)


def test_a_text_with_a_mistake_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(DENY)

    with pytest.raises(ConfigErrors):
        save_rules(path, "rules:\n  - {tool: 3}\n", version=version_of(DENY), root=str(tmp_path))

    assert path.read_text() == DENY


async def test_a_file_that_became_invalid_leaves_the_policy_as_it_was(world: World) -> None:
    path = world.workspace.parent / "policy.yaml"
    path.write_text(DENY)
    async with world.reeve(settings=world.settings(policy=Policy(files=(str(path),)))) as reeve:
        path.write_text("rules: [")
        result = await reeve.call("calculate", expression="1")

    assert result.error is not None
    assert result.error.code == "E_DENIED"
