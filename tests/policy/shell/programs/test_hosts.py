"""Which machines commands contact, and what runs on them: the words tell, or it is not known."""

import pytest

from tests.policy.shell.workspace import analysed, effects
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind

CONTACTED = [
    ("psql -h db.example.com -c 'select 1'", "net:db.example.com"),
    ("psql --host=db.example.com -c 'select 1'", "net:db.example.com"),
    ("psql -c 'select 1' postgresql://me:pw@db.example.com:5432/x", "net:db.example.com"),
    ("psql -c 'select 1' 'host=db.example.com dbname=x'", "net:db.example.com"),
    ("psql -d postgres://db.example.com/x -c 'select 1'", "net:db.example.com"),
    ("mysql -h db.example.com -e 'show tables'", "net:db.example.com"),
    ("mysql -hdb.example.com -e 'show tables'", "net:db.example.com"),
    ("redis-cli -h db.example.com get x", "net:db.example.com"),
    ("redis-cli -u redis://db.example.com:6379 get x", "net:db.example.com"),
    ("mongosh mongodb://me:pw@db.example.com/x", "net:db.example.com"),
    ("gh api https://forge.example.com/x", "net:forge.example.com"),
    ("gh api --hostname forge.example.com user", "net:forge.example.com"),
    ("gh pr list -R forge.example.com/me/it", "net:forge.example.com"),
    ("gh pr view https://forge.example.com/me/it/pull/1", "net:forge.example.com"),
    ("docker manifest inspect images.example.com/x", "net:images.example.com"),
    ("docker pull images.example.com:5000/x", "net:images.example.com"),
    ("docker run images.example.com/x", "net:images.example.com"),
    ("docker push images.example.com/x", "send:images.example.com"),
    ("git ls-remote https://forge.example.com/x", "net:forge.example.com"),
    ("git ls-remote git@forge.example.com:x", "net:forge.example.com"),
    ("git clone https://forge.example.com/x", "net:forge.example.com"),
    ("git fetch https://forge.example.com/x", "net:forge.example.com"),
    ("git pull https://forge.example.com/x", "net:forge.example.com"),
    ("git push https://forge.example.com/x main", "send:forge.example.com"),
    ("git push me@forge.example.com:x main", "send:forge.example.com"),
    ("helm show chart https://charts.example.com/x.tgz", "net:charts.example.com"),
    ("npm view https://packages.example.com/x.tgz", "net:packages.example.com"),
]


@pytest.mark.parametrize(("command", "effect"), CONTACTED)
def test_the_host_that_the_words_name_is_the_one_contacted(command: str, effect: str) -> None:
    found = [text for text in effects(command) if text.startswith(("net:", "send:"))]

    assert found == [effect]


SET_UP = [
    ("psql -c 'select 1' x", "net:database"),
    ("psql -h /run/postgresql -c 'select 1'", "net:database"),
    ("mysql -e 'show tables' x", "net:database"),
    ("gh api repos/me/it", "net:api.github.com"),
    ("gh pr list -R me/it", "net:api.github.com"),
    ("docker manifest inspect alpine", "net:index.docker.io"),
    ("git ls-remote", "net:git remote"),
    ("git ls-remote origin", "net:git remote"),
    ("git remote show origin", "net:git remote"),
    ("git remote update", "net:git remote"),
    ("git push origin main", "send:git remote"),
]


@pytest.mark.parametrize(("command", "effect"), SET_UP)
def test_without_a_named_host_the_configured_one_is_listed(command: str, effect: str) -> None:
    assert [text for text in effects(command) if text.startswith(("net:", "send:"))] == [effect]


PRIVATE = [
    "psql -h 10.0.0.1 -c 'select 1'",
    "mysql -h localhost -e 'show tables'",
    "docker manifest inspect 10.0.0.1:5000/x",
    "docker pull localhost/x",
    "git ls-remote http://10.0.0.1/x",
    "gh api http://169.254.169.254/latest",
    "xmllint --html http://127.0.0.1/x",
]


@pytest.mark.parametrize("command", PRIVATE)
def test_a_private_address_is_asked_about_whoever_contacts_it(command: str) -> None:
    assert analysed(command).danger is DangerLevel.MEDIUM


CARRIED_AWAY = [
    "psql -h db.example.com -U \"$(cat notes.txt)\" -c 'select 1'",
    "psql -h \"$(cat notes.txt)\" -c 'select 1'",
    "psql -c 'select 1' \"$(cat notes.txt)\"",
    "psql -d \"$x\" -c 'select 1'",
    "psql -c 'select 1' 'service=x'",
    "psql -c 'select 1' 'postgresql:///x?host=db.example.com'",
    "mysql -h db.example.com -u \"$(cat notes.txt)\" -e 'show tables'",
    'gh api --hostname forge.example.com "x/$(cat notes.txt)"',
    'gh api "$x"',
    'docker manifest inspect "x$(cat notes.txt)/y"',
    'git ls-remote "x$(cat notes.txt)"',
]


def test_a_word_that_names_too_many_hosts_is_unknown() -> None:
    assert not analysed(f"psql -h {','.join(['db.example.com'] * 100)} -c 'select 1'").known


@pytest.mark.parametrize("command", CARRIED_AWAY)
def test_what_only_the_run_decides_is_not_sent_to_a_machine_unasked(command: str) -> None:
    assert not analysed(command).known


ELSEWHERE_RUN = [
    "docker exec web ls",
    "docker exec -it web cat /etc/hosts",
    "podman exec web ls",
    "kubectl exec x -- ls",
    "kubectl exec -it x -c y -- cat /etc/hosts",
    "docker compose exec web ls",
    "docker-compose exec web ls",
    "ssh host ls",
]


@pytest.mark.parametrize("command", ELSEWHERE_RUN)
def test_a_command_on_another_machine_is_not_known_by_the_paths_of_this_one(command: str) -> None:
    assert not analysed(command).known
    assert not any(effect.kind is EffectKind.READ for effect in analysed(command).effects)
