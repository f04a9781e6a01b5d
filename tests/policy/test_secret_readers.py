"""One table of secrets: every reader, tool or command, treats a path the same way.

Denied: file tools refuse it, commands need approval, and the sandbox hides it. Asked: tools and commands need approval.
Free: all of them read it without approval.
"""

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.shell.workspace import analysed
from tests.world import World
from toolreeve import ExecutionContext, PermissionMode, PermissionPolicy, Toolreeve
from toolreeve.config import Workspace
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.core.result import Failure
from toolreeve.core.secrets.paths import find_secret, is_sensitive
from toolreeve.core.verdict import Decision

DENIED = """
.env .env.local prod.env .envrc id_rsa id_ed25519-old privkey.pem tls.key vault.kdbx .netrc .npmrc .pgpass .htpasswd
.docker/x .docker/config.json .ssh/config .aws/credentials .kube/config .gnupg/x .config/gh/hosts.yml .vault-token
.cargo/credentials.toml share/keyrings/x .claude/.credentials.json .authinfo .bash_history .m2/settings-security.xml
.terraform.d/credentials.tfrc.json .config/containers/auth.json .codex/auth.json
""".split()
ASKED = """
server.pem credentials.json credentials secrets.yaml secret.toml passwords.txt terraform.tfstate prod.tfstate.backup
wp-config.php service-account.json my_service_account_7.json office.ovpn krb5.keytab .secrets/a
""".split()
FREE = """
README.md main.py .env.example .env.sample example.env id_rsa.pub keys.py secrets/paths.py credentials.py package.json
docker/x key.txt server.pem.md .envoy/a .config/app/settings.toml passwords/readme.txt history.md .toolreeve.md
""".split()
EXPECTED = {**dict.fromkeys(DENIED, "denied"), **dict.fromkeys(ASKED, "asked"), **dict.fromkeys(FREE, "free")}

READERS = ("read_file", "search_text")
COMMANDS = ("cat {}", "head -n 1 {}", "grep x {}", "cp {} copy", "git show HEAD:{}", "git diff -- {}", "base64 < {}")


@pytest.fixture
def reeve(world: World) -> Toolreeve:
    for name in EXPECTED:
        for path in (world.workspace / name, world.workspace / "deep/er" / name, world.workspace / name.upper()):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
    return world.reeve()


def spellings(name: str) -> list[str]:
    return [name, f"./{name}", f"deep/er/{name}", f"deep/../{name}", f"deep//er/.././er/{name}", name.upper()]


async def tool_stance(reeve: Toolreeve, tool: str, args: dict[str, Any]) -> str:
    outcome = (await reeve.call(tool, args)).outcome
    if isinstance(outcome, Failure) and outcome.code is ErrorCode.PATH_FORBIDDEN:
        return "denied"
    return {Decision.ASK: "asked", Decision.ALLOW: "free"}[reeve.explain(tool, args).verdict.decision]


def command_stance(reeve: Toolreeve, command: str, path: Path, hidden: GuardTable) -> str:
    """What keeps the content of the path from a command: the sandbox, an approval that reading needs, or nothing."""
    if reeve.explain("bash", {"command": command}).danger < DangerLevel.HIGH:
        return "free"
    return "denied" if hidden.hidden(str(path)) else "asked"


async def test_every_reader_treats_every_spelling_of_a_path_alike(world: World, reeve: Toolreeve) -> None:
    table = GuardTable(roots=(str(world.workspace),))
    wrong = []
    async with reeve:
        for name, expected in EXPECTED.items():
            for path in (*spellings(name), str(world.workspace / name)):
                args = {"read_file": {"path": path}, "search_text": {"path": path, "pattern": "x"}}
                found = {tool: await tool_stance(reeve, tool, args[tool]) for tool in READERS}
                for command in COMMANDS:
                    if not path.startswith("/") or "HEAD:" not in command:
                        written = command.format(shlex.quote(path))
                        found[command] = command_stance(reeve, written, (world.workspace / path).resolve(), table)
                wrong += [f"{reader} {path}: {stance}" for reader, stance in found.items() if stance != expected]

    assert wrong == []


@pytest.mark.parametrize("name", [*DENIED, *ASKED])
def test_a_glob_that_spells_a_secret_needs_approval(name: str) -> None:
    folder, slash, last = name.rpartition("/")
    for pattern in (f"{last[:-1]}?", f"{last[:-1]}[{last[-1]}]", f"{last}*"):
        assert analysed(f"cat {folder}{slash}{pattern}").danger is DangerLevel.HIGH, pattern


@pytest.mark.parametrize("glob", ["*.pem", "credential*", "secrets.y*ml", "*.tfstate"])
async def test_a_search_for_sensitive_files_needs_approval_by_tool_and_by_command(world: World, glob: str) -> None:
    async with world.reeve() as reeve:
        tool = reeve.explain("search_text", {"pattern": "x", "glob": glob})
        command = reeve.explain("bash", {"command": f"grep -r --include='{glob}' x ."})

    assert (tool.verdict.decision, command.verdict.decision) == (Decision.ASK, Decision.ASK)


@pytest.mark.parametrize("glob", ["*.py", "*.json", "*.yaml", "*", "**/*.txt", "test_*.py"])
async def test_a_search_for_ordinary_files_runs_without_approval(world: World, glob: str) -> None:
    async with world.reeve() as reeve:
        tool = reeve.explain("search_text", {"pattern": "x", "glob": glob})
        command = reeve.explain("bash", {"command": f"grep -r --include='{glob}' x ."})

    assert (tool.verdict.decision, command.verdict.decision) == (Decision.ALLOW, Decision.ALLOW)


async def test_names_alone_are_listed_without_approval(world: World, reeve: Toolreeve) -> None:
    async with reeve:
        for name in (*ASKED, *FREE):
            folder = str(Path(name).parent)
            decisions = {
                reeve.explain("list_directory", {"path": folder}).verdict.decision,
                reeve.explain("search_files", {"pattern": name}).verdict.decision,
                reeve.explain("bash", {"command": f"ls {folder}"}).verdict.decision,
                reeve.explain("bash", {"command": f"find . -name {Path(name).name}"}).verdict.decision,
            }
            assert decisions == {Decision.ALLOW}, name


async def test_a_link_does_not_lead_to_a_secret(world: World, reeve: Toolreeve) -> None:
    async with reeve:
        for number, name in enumerate(DENIED):
            link = world.workspace / f"link{number}"
            link.symlink_to(world.workspace / name)
            for tool, args in (
                ("read_file", {"path": link.name}),
                ("search_text", {"path": link.name, "pattern": "x"}),
            ):
                assert await tool_stance(reeve, tool, args) == "denied", name
            assert GuardTable(roots=(str(world.workspace),)).hidden(str(link.resolve())), name


@pytest.mark.parametrize("tool", READERS)
async def test_a_link_to_a_sensitive_file_needs_approval_in_file_tools(
    world: World, reeve: Toolreeve, tool: str
) -> None:
    (world.workspace / "plain.txt").symlink_to("secrets.yaml")
    (world.workspace / "folder").symlink_to(".secrets")

    extra = {"pattern": "x"} if tool == "search_text" else {}

    async with reeve:
        found = [await tool_stance(reeve, tool, {"path": path, **extra}) for path in ("plain.txt", "folder/a")]

    assert found == ["asked", "asked"]


async def test_what_the_configuration_names_is_free_for_tools_and_commands(world: World) -> None:
    named = Workspace(dir=str(world.workspace), sensitive_allow=("fixtures/*", ".env"))
    async with world.reeve(settings=world.settings(workspace=named)) as reeve:
        for path in (".env", "fixtures/server.pem", "fixtures/credentials.json", "fixtures/.npmrc"):
            for tool, args in (("read_file", {"path": path}), ("bash", {"command": f"cat {path}"})):
                assert reeve.explain(tool, args).verdict.decision is Decision.ALLOW, (tool, path)
        for path in ("server.pem", "a/.env"):
            assert reeve.explain("bash", {"command": f"cat {path}"}).verdict.decision is Decision.ASK


PIECES = """
.env env . .. - _ key priv pem .pem .pub id_rsa credentials secret s .json .yaml .yml example sample docker .docker ssh
.ssh .config gh gcloud history .bash_history tfstate terraform service account .secrets password a B Ä ſ / //
""".split()


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join))
def test_commands_and_tools_agree_on_any_name(path: str) -> None:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or not parts or path.startswith("/"):
        return
    known = find_secret(parts) is not None or is_sensitive("/".join(parts))

    assert (analysed(f"cat -- {shlex.quote(path)}").danger is DangerLevel.HIGH) == known


@pytest.mark.parametrize("name", ["credentials.json", "secrets.yaml", "server.pem"])
async def test_plan_mode_denies_a_sensitive_file_to_tools_and_commands_alike(world: World, name: str) -> None:
    (world.workspace / name).write_text("x")
    async with world.reeve(policy=PermissionPolicy(ExecutionContext(mode=PermissionMode.PLAN))) as reeve:
        calls = [("read_file", {"path": name}), ("search_text", {"pattern": "x", "path": name})]
        calls.append(("bash", {"command": f"cat {name}"}))

        verdicts = {tool: reeve.explain(tool, args).verdict.decision for tool, args in calls}

        assert reeve.explain("read_file", {"path": "notes.txt"}).verdict.decision is Decision.ALLOW
    assert set(verdicts.values()) == {Decision.DENY}


@pytest.mark.parametrize("glob", ["?ecrets.yaml", "secret*.y?ml", "cred*.json", "[s]ecrets.toml", "terraform.tf*"])
def test_a_pattern_that_targets_a_sensitive_file_needs_approval(reeve: Toolreeve, glob: str) -> None:
    assert reeve.explain("bash", {"command": f"cat {glob}"}).danger is DangerLevel.HIGH


@pytest.mark.parametrize("glob", ["*.yaml", "*.json", "s*.yaml", "src/*.toml", "README*", "*"])
def test_a_broad_pattern_needs_no_approval(reeve: Toolreeve, glob: str) -> None:
    assert reeve.explain("bash", {"command": f"cat {glob}"}).danger is DangerLevel.SAFE


async def test_a_search_through_a_folder_leaves_sensitive_files_out_and_names_them(world: World) -> None:
    (world.workspace / "secrets.yaml").write_text("needle")
    (world.workspace / "notes.txt").write_text("needle")
    async with world.reeve() as reeve:
        everything = await reeve.call("search_text", pattern="needle")
        some = await reeve.call("search_text", pattern="needle", glob="*.yaml")

    assert [match["path"] for match in everything.data["matches"]] == ["notes.txt"]
    assert everything.data["sensitive"] == some.data["sensitive"] == ["secrets.yaml"]
    assert some.data["matches"] == []
