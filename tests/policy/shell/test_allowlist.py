import pytest

from toolreeve.core.argv import split
from toolreeve.core.call import Role
from toolreeve.core.command_settings import CommandRules
from toolreeve.policy.shell.allowlist import BLOCKED, SHELLS, STARTED, refusal
from toolreeve.policy.shell.analysis import analyse_programs
from toolreeve.policy.shell.interpret.builtins import BUILTINS
from toolreeve.policy.shell.programs.spec import program

OPERATOR = Role.OPERATOR


def reason(command: str, role: Role = OPERATOR, **rules: tuple[str, ...]) -> str:
    """Why a command is refused; empty if it may run."""
    configured = CommandRules(**rules)  # type: ignore[arg-type]
    found = analyse_programs(split(command), cwd="/project", home="/home/me", root="/project")
    return refusal(found, role, configured, root="/project") or ""


def test_each_role_may_start_what_the_one_before_it_may() -> None:
    viewer, operator, admin = STARTED.values()

    assert viewer < operator < admin
    assert len(admin) == 189


def test_nothing_is_both_listed_and_blocked_and_every_block_has_its_reason() -> None:
    assert not STARTED[Role.ADMIN] & BLOCKED.keys()
    assert SHELLS.issubset(BLOCKED)
    assert all(BLOCKED.values())


def test_every_listed_program_is_specified() -> None:
    assert [name for name in STARTED[Role.ADMIN] if program(name) is None and name not in BUILTINS] == []


@pytest.mark.parametrize(
    "command",
    [
        "ls -la src",
        "grep -rn 'TODO' src",
        "find . -name '*.py' -newer a.txt",
        "git log --oneline -n 5",
        "git diff HEAD~1 -- src",
        "git log -p -i --grep=fix",
        "sort -k2,2n data.csv",
        "head -n 20 README.md | wc -l",
        "jq '.a | .b' x.json",
        "/usr/bin/cat a.txt",
        "env LC_ALL=C sort a.txt",
        "timeout 5 cat a.txt",
        "find . -name '*.py' -print0 | xargs -0 wc -l",
    ],
)
def test_a_viewer_may_look(command: str) -> None:
    assert reason(command, Role.VIEWER) == ""


@pytest.mark.parametrize(
    "command",
    [
        "pytest backend/tests -v",
        "python3 -u script.py --flag -c x",
        "python -m pytest -x",
        "env PYTHONPATH=src python3 -m mypy src",
        "git commit -m 'a message'",
        "git -C sub status",
        "git switch -c feature && git cherry-pick -x HEAD~1",
        "git add -A && git status",
        "npm run build -- --mode production",
        "npx tsc --noEmit",
        "uv run pytest -q",
        "poetry run mypy .",
        "node server.js",
        "node --test",
        "rm -rf build/cache",
        "rm a.txt",
        "sed -n '1,20p' a.txt",
        "sed -i.bak 's/old/new/g; /^#/d' a.txt",
        "sed --sandbox 'y/abc/xyz/' a.txt",
        "awk -F, '{print $1, $3}' data.csv",
        "tar -xzf a.tar.gz -C out",
        "sqlite3 a.db 'SELECT count(*) FROM t'",
        "sqlite3 -safe a.db",
        "make -j2 test",
        "cargo test --all",
        "go test ./...",
        "gcc -O2 -o a a.c",
        ".venv/bin/pytest -q",
        "./node_modules/.bin/eslint src",
        "mkdir -p a/b && cp x a/b",
        "curl -sS http://example.org/",
    ],
)
def test_an_operator_may_work(command: str) -> None:
    assert reason(command) == ""


@pytest.mark.parametrize(
    "command",
    [
        "find . -exec sh -c id ';'",
        "find . -execdir id +",
        "find . -ok id ';'",
        "git -c core.pager='!id' log",
        "git --exec-path=/tmp status",
        "git log --ext-diff",
        "git log --ext-d",
        "git clone --upload-pack=id a b",
        "git fetch --upload-pa id",
        "git rebase -x id HEAD~1",
        "git rebase --exec=id HEAD~1",
        "git grep -Oid x",
        "git grep -nOid x",
        "git -C sub rebase -ix id HEAD~1",
        "git clone -u id a b",
        "git grep --open-files-in-pager=id x",
        "git bisect run id",
        "git submodule foreach id",
        "git difftool",
        "git some-alias",
        "git clone -c core.fsmonitor=id a b",
        "git clone --config=core.fsmonitor=id a b",
        "git init --template=evil",
        "tar cf x.tar a --checkpoint=1 --checkpoint-action=exec=id",
        "tar cf x.tar a --checkpoint-act=exec=id",
        "tar xf x.tar --to-command=id",
        "tar -xI id -f x.tar",
        "tar xIf id x.tar",
        "tar cf x.tar a --use-compress-program id",
        "zip x.zip a -T -TT 'sh #'",
        "rsync -e 'sh -c id' a b:c",
        "rsync --rsh=id a b:c",
        "sort --compress-program=id a",
        "split --filter=id a",
        "rg --pre=id x",
        "env bash -c id",
        "env LD_PRELOAD=x.so ls",
        "env TAR_OPTIONS=--to-command=id tar xf a.tar",
        "env -S 'sh -c id'",
        "env PATH=. ls",
        "timeout 5 bash -c id",
        "timeout --foreground 5 sudo id",
        "nice -n 5 sh",
        "xargs bash",
        "xargs -I{} sh -c {}",
        "xargs find",
        "xargs git",
        "xargs env",
        "xargs --arg-file=x cat",
        "python3 -c 'import os'",
        "python3 -Ic 'import os'",
        "python3",
        "python3 -",
        "python3 /dev/stdin",
        "python3 /proc/self/fd/0",
        "python3 -m pty",
        "python3 -m code",
        "python3 -i a.py",
        "node -e 1",
        "node --eval=1",
        "node -p 1",
        "node -r ./x.js y.js",
        "node",
        "perl -e 1",
        "perl -ne 1 x",
        "ruby -e 1",
        "awk 'BEGIN{system(\"id\")}'",
        "awk 'BEGIN{print | \"id\"}'",
        "awk '{\"id\" | getline x}'",
        "awk -f x.awk",
        "awk '@load \"x\"'",
        "sed '1e id' a",
        "sed 's/a/id/e' a",
        "sed -f x.sed a",
        "sed -n '/x/{p;e id' a",
        "sed --expression='1e id' a",
        "npm exec bash",
        "npm x bash",
        "npm run test --script-shell=evil",
        "npm --script-shell=evil run test",
        "npm config set script-shell evil",
        "npx bash",
        "npx -c id",
        "npx -p evil evil",
        "pnpm exec bash",
        "pnpm dlx evil",
        "yarn dlx evil",
        "uv run bash",
        "uv run --with evil pytest",
        "uv tool run evil",
        "poetry run sh",
        "go test -exec id ./...",
        "go build -toolexec=id ./...",
        "go generate",
        "cargo --config x build",
        "cargo build --config=x",
        "cargo evil",
        "make --eval='x:;id'",
        "make SHELL=evil",
        "make -f -",
        "make -f /dev/stdin",
        "cmake -E env sh",
        "gcc -wrapper sh,-c,id a.c",
        "gcc -fplugin=x.so a.c",
        "gcc @options",
        "mypy --python-executable evil a.py",
        "mypy --python-exec=evil a.py",
        "pylint --init-hook='import os' a.py",
        "pip config edit --editor=id",
        "wget --use-askpass=evil http://a/",
        "wget -e use_askpass=evil http://a/",
        "curl -K evil.cfg",
        "sqlite3 a.db '.shell id'",
        "sqlite3 a.db",
        "sqlite3 -cmd '.shell id' a.db 'SELECT 1'",
        "sqlite3 a.db \"SELECT load_extension('x')\"",
        "xmllint --shell a.xml",
        "patch -e -i x",
        "openssl engine x",
        "mvn exec:exec",
    ],
)
def test_no_program_may_be_made_to_run_another(command: str) -> None:
    assert reason(command, Role.ADMIN) != ""


@pytest.mark.parametrize(
    "command",
    [
        "find . -delete",
        "find . -fprint out",
        "sort -o out a",
        "sort -no out a",
        "sort --outp=out a",
        "uniq a out",
        "xxd -r - out",
        "git commit -m x",
        "git checkout .",
        "git log --output=x",
        "git branch -D main",
        "touch a",
        "python3 a.py",
        "env touch a",
        "timeout 5 rm a",
        "xargs rm",
    ],
)
def test_a_viewer_changes_nothing(command: str) -> None:
    assert reason(command, Role.VIEWER) != ""


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "rm -r .",
        "rm -fr ./",
        "rm -r ..",
        "rm -R ../x",
        "rm -r /etc",
        "rm -rf .git",
        "rm --recursive --force /",
        "rm --rec a/..",
        "rm -rf a/../..",
        "rm --no-preserve-root /",
    ],
)
def test_rm_does_not_delete_everything(command: str) -> None:
    assert reason(command) != ""


@pytest.mark.parametrize("name", sorted(SHELLS))
def test_no_shell_is_ever_started_whatever_the_configuration_lists(name: str) -> None:
    assert "a shell runs anything" in reason(f"{name} x", Role.ADMIN, allow=(name,))
    assert "a shell runs anything" in reason(f"/bin/{name} x", Role.ADMIN)


@pytest.mark.parametrize(
    "program", ["./ls", "sub/ls", "/tmp/ls", "../.venv/bin/pytest", "/project/../usr/bin/ls", "/usr/bin/../../tmp/ls"]
)
def test_a_file_of_the_callers_own_is_not_the_program_it_is_named_after(program: str) -> None:
    assert "is not a program of the system" in reason(program)


@pytest.mark.parametrize(
    ("command", "role", "refused"),
    [
        ("sed 's/a/b/w out' a", OPERATOR, ""),
        ("sed 's/a/b/w /etc/x' a", OPERATOR, "writes /etc/x, which needs the role admin"),
        ("cp a /tmp/b", OPERATOR, ""),
        ("cp a ../b", OPERATOR, "writes /b, which needs the role admin"),
        ("cp a /opt/b", Role.ADMIN, ""),
        ("gcc -o /usr/bin/x a.c", OPERATOR, "needs the role admin"),
        ("pytest --junitxml=/etc/x", OPERATOR, "needs the role admin"),
        ("git fetch", Role.VIEWER, "writes /project/.git, which needs the role operator"),
        ("sort a | tee b", Role.VIEWER, "'tee' needs the role operator"),
        ("git -C sub status", Role.VIEWER, "needs the role operator"),
        (".venv/bin/ls", Role.VIEWER, "which lies in the workspace, which needs the role operator"),
        ("sqlite3 a.db 'INSERT INTO t VALUES (1)'", OPERATOR, ""),
        ("rm -rf /", Role.ADMIN, "which is refused to every role"),
        ("dd if=a of=/dev/sda", Role.ADMIN, "is blocked"),
    ],
)
def test_a_role_may_change_only_what_it_may(command: str, role: Role, refused: str) -> None:
    found = reason(command, role)

    assert refused in found
    assert bool(refused) is bool(found)


def test_a_refusal_says_which_role_is_needed() -> None:
    assert reason("docker ps") == "'docker' needs the role admin, this call has the role operator"
    assert (
        reason("git push", Role.VIEWER)
        == "git: it sends data to git remote, which needs the role operator, this call has the role viewer"
    )
    assert reason("docker ps", Role.ADMIN) == ""


def test_a_blocked_program_says_why() -> None:
    assert reason("sudo ls") == "'sudo' is blocked: it changes privileges"
    assert reason("no-such-thing") == "'no-such-thing' is not an allowed program (commands.allowlist)"


def test_the_configured_allowlist_replaces_the_shipped_one() -> None:
    assert reason("terragrunt plan", allow=("terragrunt",)) == ""
    assert reason("chmod +x a", allow=("chmod",)) == ""
    assert "configured allowlist" in reason("ls", allow=("terragrunt",))
    assert "needs the role operator" in reason("terragrunt plan", Role.VIEWER, allow=("terragrunt",))
    assert "find: it would run another program" in reason("find . -exec id ';'", allow=("find",))
    assert "find: the flag -files0-from" in reason("find -files0-from x", allow=("find",))


def test_the_configured_blocklist_adds_to_the_shipped_one_and_outranks_the_allowlist() -> None:
    assert "blocked by the configuration" in reason("curl http://a/", block=("curl",))
    assert "`git push` is blocked" in reason("git -C sub push origin", block=("git push",))
    assert "blocked by the configuration" in reason("env LC_ALL=C curl http://a/", block=("curl",))
    assert reason("git status", block=("git push",)) == ""
    assert "blocked by the configuration" in reason("curl http://a/", allow=("curl",), block=("curl",))


def test_wrappers_cannot_be_stacked_without_end() -> None:
    assert reason("timeout 1 nice timeout 1 ls") == ""
    assert "wrapped in more than 4 others" in reason("nice " * 10 + "ls")
