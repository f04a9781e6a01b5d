import json

import pytest

from tests.policy.shell.workspace import analysed
from toolreeve.policy.shell.programs import compile as programs
from toolreeve.policy.shell.programs import spec, validation


def test_every_example_in_the_specifications_holds() -> None:
    assert validation.broken_examples() == []


def test_every_specification_is_valid() -> None:
    validation.check_all()


def test_the_compiled_specifications_are_those_of_the_yaml_files() -> None:
    assert json.loads(programs.COMPILED.read_text()) == programs.merged()


def test_agents_find_most_of_their_programs_specified() -> None:
    assert len(spec.names()) >= 300


def test_every_family_has_examples_of_both_kinds() -> None:
    kinds = {(place.partition(":")[0], known) for place, _, known in validation.examples()}

    assert kinds >= {(family, known) for family in programs.families() for known in (True, False)}


def test_a_flag_is_known_by_its_full_name_only() -> None:
    assert analysed("sort --reverse x").known
    assert not analysed("sort --rev x").known


def test_clustered_flags_and_values_are_told_apart() -> None:
    assert analysed("head -qn5 x").known
    assert not analysed("head -qZn5 x").known
    assert analysed("sort -k2,2 -t: --key=1 x").known


def test_after_two_dashes_everything_is_an_operand() -> None:
    assert [str(effect) for effect in analysed("cat -- --version").effects][-1] == "read:/project/--version"


@pytest.mark.parametrize(
    ("known", "unknown"),
    [
        ("aws ec2 describe-instances --instance-ids i j --output json", "aws ec2 describe-instances --made-up x"),
        ("aws --region x s3api list-objects-v2 --bucket=b --prefix p", "aws s3api list-objects-v2 --bucket b out"),
        ("aws iam get-role --role-name r", "aws iam get-role --function-name r"),
        ("az vm list -g x --show-details -o table", "az vm list -g x --made-up"),
        ("az storage blob list -c x --account-name y --auth-mode login", "az storage blob list --file x"),
        ("gcloud compute instances list --filter=a=b --zones z", "gcloud compute instances list --made-up=b"),
        ("gcloud run services describe s --region r", "gcloud run services describe s --log-http"),
        ("auth0 apps list --json", "auth0 apps list --made-up"),
        ("gh pr list --state open -L 5 --json number", "gh pr list --made-up"),
        ("gh run view 5 --log-failed", "gh run view 5 --log-fail"),
        ("aws ec2 describe-instances --instance-ids i-1", 'aws ec2 describe-instances --instance-ids "$ID"'),
        ("aws s3 ls s3://b", "aws s3 ls $WHERE"),
    ],
)
def test_cloud_commands_have_only_the_flags_that_are_listed_too(known: str, unknown: str) -> None:
    assert analysed(known).known, analysed(known).reason
    assert not analysed(unknown).known


def test_a_flag_may_carry_its_value_where_the_specification_names_its_beginning() -> None:
    assert analysed("gcc -O2 -DNAME=1 -Iinclude -c a.c").known
    assert not analysed("gcc -Wl,-plugin,x.so a.c").known


def test_what_runs_code_of_the_workspace_is_not_known_but_understood() -> None:
    understood = [analysed(command).parts[0] for command in ("make test", "python3 a.py", "pytest -q", "npm run x")]
    strange = [analysed(command).parts[0] for command in ("make --eval=x", "python3 -c x", "npm exec x", "frobnicate")]

    assert [(part.known, part.code) for part in understood] == [(False, True)] * 4
    assert [(part.known, part.code) for part in strange] == [(False, False)] * 4
