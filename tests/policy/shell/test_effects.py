"""Effects are true: what a command prints, overwrites, contacts or deletes without naming it is told all the same."""

import pytest

from tests.policy.shell.world import effects, judged, runs_unasked
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind


def touches(command: str, kind: EffectKind, path: str) -> bool:
    return any(effect.kind is kind and effect.touches(path) for effect in judged(command).effects)


def reads(command: str, path: str = "/project/books/plan.hush") -> bool:
    return touches(command, EffectKind.READ, path)


def writes(command: str, path: str) -> bool:
    return touches(command, EffectKind.WRITE, path)


COMMITTED_SECRETS = [
    "git cat-file -p HEAD:.env",
    "git cat-file blob HEAD:.env",
    "git cat-file -p :.env",
    "git cat-file -p :0:.env",
    "git log -L1,1:.env",
    "git log -L :main:.env",
    "git grep KEY HEAD -- .env",
    "git grep KEY .env",
    "git grep KEY -- '*.env'",
    "git archive HEAD | tar xO .env",
    "git archive HEAD .env",
    "tar -xOf a.tar .env",
    "git show HEAD -- .env",
    "git show --stat HEAD:.env",
    "git show 'HEAD@{2024-01-01 10:00}:.env'",
    "git diff HEAD -- .env",
    "git diff -- '*.pem'",
    "git diff -- ':(icase).ENV'",
    "git blame .env",
    "git blame HEAD -- .env",
    "git log -p -- .env",
    "git diff --no-index /dev/null .env",
]


@pytest.mark.parametrize("command", COMMITTED_SECRETS)
def test_a_committed_secret_is_asked_about_like_one_on_disk(command: str) -> None:
    assert judged(command).danger >= DangerLevel.HIGH


CHOSEN_LATE = [
    'git show "HEAD:$x"',
    'git show --stat "HEAD:$x"',
    'git show "HEAD$(cat notes.txt)"',
    'git log -L "$x"',
    'git cat-file -p "HEAD:$(cat notes.txt)"',
    'git archive HEAD | tar xO -- "$x"',
    'gh pr list -R "$(cat notes.txt)"',
]


@pytest.mark.parametrize("command", CHOSEN_LATE)
def test_what_is_printed_must_not_be_chosen_only_when_it_runs(command: str) -> None:
    assert not judged(command).known


PRINTS_ALL = [
    "git diff",
    "git diff main",
    "git diff main..work",
    "git diff --stat -p",
    "git diff HEAD -- ':!src'",
    "git show",
    "git show HEAD",
    "git show --stat abc1234",
    "git log -p",
    "git log -u",
    "git log --patch",
    "git log -U5",
    "git log --cc",
    "git log -S word -p",
    "git reflog -p",
    "git stash show -p",
    "git stash list -p",
    "git format-patch --stdout HEAD~2",
    "git cat-file -p abc1234",
    "git cat-file blob abc1234",
    "git archive HEAD",
    "git grep word",
    "git grep word HEAD",
    "git whatchanged -p",
    "git range-diff a b c",
    "git status -v",
    "git rerere diff",
]


@pytest.mark.parametrize("command", PRINTS_ALL)
def test_a_git_command_that_prints_content_reads_every_file_of_the_repository(command: str) -> None:
    assert reads(command)
    assert runs_unasked(command), judged(command).reason


def test_from_a_subfolder_git_prints_files_of_the_whole_workspace() -> None:
    found = judged("git diff", cwd="/project/src").effects

    assert any(effect.touches("/project/books/plan.hush") for effect in found if effect.kind is EffectKind.READ)


PRINTS_NAMES = [
    "git log",
    "git log --oneline -5",
    "git log --stat -- books",
    "git status",
    "git status --short",
    "git diff --stat",
    "git diff --name-only",
    "git diff --name-status HEAD~1",
    "git diff --shortstat",
    "git diff --numstat",
    "git diff --quiet",
    "git stash list",
    "git cat-file -t HEAD",
    "git archive --list",
]


@pytest.mark.parametrize("command", PRINTS_NAMES)
def test_a_git_command_that_prints_names_reads_no_content(command: str) -> None:
    assert not reads(command)
    assert runs_unasked(command), judged(command).reason


PRINTS_OTHERS = [
    "git diff -- src",
    "git diff HEAD ./src",
    "git show HEAD:src/a.py",
    "git log -p -- src/a.py",
    "git log -L1,5:src/a.py",
    "git grep word -- src",
    "git blame src/a.py",
]


@pytest.mark.parametrize("command", PRINTS_OTHERS)
def test_named_paths_narrow_down_what_git_prints(command: str) -> None:
    assert not reads(command)
    assert reads(command, "/project/src/a.py")
    assert runs_unasked(command), judged(command).reason


def test_what_a_pathspec_leaves_out_is_no_secret_that_is_read() -> None:
    assert runs_unasked("git diff -- . ':!.env'")


INTO_A_DIRECTORY = [
    "cp sub/a.ledger books/",
    "cp sub/a.ledger books",
    "cp -t books sub/a.ledger",
    "cp --target-directory=books sub/a.ledger sub/b",
    "cp sub/*.ledger books",
    "cp sub/* books",
    "cp -r sub/. books",
    "cp -a other/books .",
    "cp --parents books/a.ledger ../project",
    "cp -b x books/a.ledger",
    "find sub -type f -exec cp {} books \\;",
    "mv sub/a.ledger books",
    "mv -t books sub/a.ledger",
    "mv sub/books .",
    "mv sub books",
    "install sub/a.ledger books",
    "install -t books sub/a.ledger",
    "ln -sf ../sub/a.ledger books",
    "ln -sf -t books ../sub/a.ledger",
    "cd books && ln -sf ../sub/a.ledger",
    "git mv sub/a.ledger books",
]
WHOLE_TREES = [
    "unzip a.zip",
    "unzip -d books a.zip",
    "tar xf a.tar -C books",
    "rsync -a sub/ books/",
    "wget -P books https://example.com/a.ledger",
    "wget -r https://example.com/",
    "cd books && wget https://example.com/a.ledger",
    "chmod -R 644 books",
    "chown -R me books",
    "chgrp --recursive me .",
    "patch -p1 -i x.patch",
    "patch -d books -p1 -i x.patch",
    "black .",
    "ruff format .",
    "ruff check --fix",
    "isort books",
    "prettier --write .",
    "gofmt -w books",
    "split -l 5 x books/a.",
    "cd books && split -l 5 x a",
    "gzip -r books",
    "git checkout .",
    "git checkout work",
    "git switch work",
    "git restore .",
    "git reset --hard",
    "git stash",
    "git stash pop",
    "git pull",
    "git merge work",
    "git rebase main",
    "git cherry-pick abc1234",
    "git apply x.patch",
    "git am x.patch",
]


@pytest.mark.parametrize("command", [*INTO_A_DIRECTORY, *WHOLE_TREES])
def test_what_may_be_overwritten_is_told_though_it_is_not_named(command: str) -> None:
    assert writes(command, "/project/books/a.ledger")
    assert not runs_unasked(command)


ELSEWHERE = [
    "cp sub/a.ledger sub/b.ledger",
    "cp sub/*.txt books",
    "cp sub/a.ledger .",
    "mv sub/a.ledger .",
    "mv sub .",
    "cp -r sub .",
    "unzip -d sub a.zip",
    "unzip -l a.zip",
    "split -l 5 x books/part",
    "wget https://example.com/a.ledger",
    "git reset HEAD x",
    "ruff check .",
    "cp books/a.ledger /dev/null",
]


@pytest.mark.parametrize("command", ["cp -t a -t b c", f"sed -i'{'*' * 100}' s/a/b/ x"])
def test_a_place_that_cannot_be_told_is_not_known(command: str) -> None:
    assert not judged(command).known


@pytest.mark.parametrize("command", ELSEWHERE)
def test_what_is_written_elsewhere_does_not_count_as_overwritten(command: str) -> None:
    assert not writes(command, "/project/books/a.ledger")


DELETED = [
    "mv books sub",
    "rsync -a --delete sub/ books/",
    "rsync -a --remove-source-files books/ sub/",
    "git clean -fdx",
    "git clean -f books",
]


@pytest.mark.parametrize("command", DELETED)
def test_what_goes_with_a_tree_is_deleted(command: str) -> None:
    assert touches(command, EffectKind.DELETE, "/project/books/a.ledger")


def test_a_secret_inside_a_zip_is_asked_about() -> None:
    assert judged("unzip -p a.zip .env").danger is DangerLevel.HIGH


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
def test_where_no_host_is_named_the_one_that_is_set_up_is_told(command: str, effect: str) -> None:
    assert [text for text in effects(command) if text.startswith(("net:", "send:"))] == [effect]


PRIVATE = [
    "psql -h 10.0.0.1 -c 'select 1'",
    "mysql -h localhost -e 'show tables'",
    "docker manifest inspect 10.0.0.1:5000/x",
    "docker pull localhost/x",
    "git ls-remote http://10.0.0.1/x",
    "gh api http://169.254.169.254/latest",
    "npm view http://127.0.0.1/x.tgz",
]


@pytest.mark.parametrize("command", PRIVATE)
def test_a_private_address_is_asked_about_whoever_contacts_it(command: str) -> None:
    assert judged(command).danger is DangerLevel.MEDIUM


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


def test_no_word_names_more_hosts_than_can_be_told() -> None:
    assert not judged(f"psql -h {','.join(['db.example.com'] * 100)} -c 'select 1'").known


@pytest.mark.parametrize("command", CARRIED_AWAY)
def test_what_only_the_run_decides_is_not_sent_to_a_machine_unasked(command: str) -> None:
    assert not judged(command).known


CALLS = [
    "select delete_everything()",
    "select drop_all ( )",
    'select "delete_everything"()',
    "select `drop_all`()",
    "select public.count(1)",
    "select public . count (1)",
    "select drop_all/**/()",
    "select drop_all -- count\n()",
    "select drop_all # count\n()",
    "select count(*), coalesce(drop_all(), 1) from x",
    "select * from x where drop_all() > 1",
    "values (drop_all())",
    "select pg_sleep(1)",
    "select [drop_all]()",
]


@pytest.mark.parametrize("statement", CALLS)
@pytest.mark.parametrize("client", ["psql -c", "mysql -e", "sqlite3 x.db"])
def test_a_statement_that_calls_a_function_of_its_own_is_not_known(client: str, statement: str) -> None:
    quoted = statement.replace("'", "'\\''")

    assert not judged(f"{client} '{quoted}'").known


QUERIES = [
    "select count(*) from x",
    "select lower(name), round(avg(price), 2) from x group by name",
    "select * from x where id in (1, 2) and (a > 1 or b < 2)",
    "select coalesce(max(day), current_date) from (select day from x) y",
    "select row_number() over (partition by a order by b) from x",
    "select cast(a as decimal(10, 2)), (a + b) * (c - d) from x",
    "select json_extract(a, b) from x where not exists (select 1 from y)",
    "explain select 1",
]


@pytest.mark.parametrize("statement", QUERIES)
@pytest.mark.parametrize("client", ["psql -c", "mysql -e", "sqlite3 x.db"])
def test_a_statement_that_only_computes_runs_unasked(client: str, statement: str) -> None:
    assert runs_unasked(f"{client} '{statement}'"), judged(f"{client} '{statement}'").reason


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
    assert not judged(command).known
    assert not any(effect.kind is EffectKind.READ for effect in judged(command).effects)


AIMED = [
    "find . -name .env -exec cat {} +",
    "find .. -name '.env*' -exec cat {} \\;",
    "find . -name .env -execdir cat {} \\;",
    "find . -iname '*.PEM' -exec cat {} +",
    "find . -path './.ssh/*' -exec cat {} +",
    "find . -wholename '*/.aws/*' -exec cat {} +",
    "find . -regex '.*\\.pem' -exec cat {} +",
    "find . -name '*.pem' -print0 | xargs -0 cat",
    'cat "$(find . -name .env | head -n 1)"',
    "grep -r KEY --include=.env .",
    "grep -r KEY --include '*.pem' .",
    "grep -r KEY --include=.env* .",
    "rg KEY -g .env",
    "rg --glob=.env* KEY",
    "rg --hidden KEY -g '.env*'",
    "rg KEY --glob='*.{pem,key}'",
    "fd -H '^\\.env$' -x cat",
    "fd -e pem -X cat",
    "fd -g '*.pem' -X cat",
]


@pytest.mark.parametrize("command", AIMED)
def test_a_search_aimed_at_secrets_asks_when_they_are_read(command: str) -> None:
    assert judged(command).danger >= DangerLevel.HIGH


AIMED_ELSEWHERE = [
    "find . -name .env",
    "find . -name .env -exec ls -l {} +",
    "find . -name '*.pem' -print0 | xargs -0 ls -l",
    "find . ! -name .env -exec cat {} +",
    "find . -not -name '*.pem' -print0 | xargs -0 cat",
    "find . -name .ssh -prune -o -name '*.py' -exec cat {} +",
    "find . -name '*.py' -exec cat {} +",
    "grep -r KEY --include='*.py' .",
    "grep -r KEY --exclude=.env .",
    "rg KEY -g '!.env'",
    "rg KEY -g '*.{py,md}'",
    "fd -e py -X cat",
    "fd . -X cat",
]


@pytest.mark.parametrize("command", AIMED_ELSEWHERE)
def test_a_search_that_reads_no_secret_it_is_aimed_at_runs_unasked(command: str) -> None:
    assert runs_unasked(command), judged(command).reason


KEPT = [
    ("sed -i.bak s/a/b/ books/a", "/project/books/a.bak"),
    ("sed -i.bak s/a/b/ -- books/*", "/project/books/a.bak"),
    ("sed --in-place=.bak s/a/b/ books/a", "/project/books/a.bak"),
    ("sed -i'old_*' s/a/b/ books/a", "/project/books/old_a"),
    ("flock books/lock -c 'ls'", "/project/books/lock"),
    ("flock books/lock ls", "/project/books/lock"),
    ("flock lock -c 'touch books/a'", "/project/books/a"),
]


@pytest.mark.parametrize(("command", "path"), KEPT)
def test_the_old_file_and_the_lock_are_written_too(command: str, path: str) -> None:
    assert judged(command).known
    assert writes(command, path)


def test_a_lock_is_all_that_flock_itself_writes() -> None:
    assert effects("flock books/lock ls") == ["write:/project/books/lock", "read:/project"]


IRREPLACEABLE = [
    "rm -rf .git",
    "rm -rf .git/objects",
    "rm -rf .git/refs/heads",
    "rm -rf .git/*",
    "rm -rf .hg/store",
    "rm -rf /home/other",
    "rm -rf /home/other/*",
    "rm -rf /Users/other",
    "rm -rf /mnt/disk",
    "find / -name '*.log' -delete",
    "find / -name '*.log' -exec rm {} +",
    "find ~ -name '*.tmp' -delete",
    "find . -delete",
]


@pytest.mark.parametrize("command", IRREPLACEABLE)
def test_deleting_all_over_a_root_a_disk_a_home_or_a_history_is_critical(command: str) -> None:
    assert judged(command).danger is DangerLevel.CRITICAL


@pytest.mark.parametrize("command", ["rm -rf build", "rm -rf .git/hooks", "find . -name '*.log' -delete", "rm x"])
def test_deleting_something_in_the_workspace_is_high(command: str) -> None:
    assert judged(command).danger is DangerLevel.HIGH
