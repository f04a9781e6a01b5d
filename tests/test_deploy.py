"""What is in `deploy/`: valid for the programs that read it, true to our commands and settings, and it works."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import httpx2
import kubernetes_validate
import pytest
import yaml
from compose_spec import PyCompose

from tests.docs.page import ROOT
from tests.execution.workers.nats_server import PROGRAM, NatsServer, free_port
from toolreeve.cli.main import toolreeve
from toolreeve.config import load
from toolreeve.execution.workers.nats_config import write_config
from toolreeve.execution.workers.signing import new_key

DEPLOY = ROOT / "deploy"
K8S = DEPLOY / "k8s"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
OBJECTS = [each for path in sorted(K8S.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text())]
KUSTOMIZATION = next(each for each in OBJECTS if each["kind"] == "Kustomization")
RESOURCES = [each for each in OBJECTS if each["kind"] != "Kustomization"]
GATEWAY_KEY, WORKER_KEY = new_key("ed25519")
SECRETS = {
    "POSTGRES_PASSWORD": "pw",
    "GATEWAY_TOKEN": "token-of-the-gateway",
    "MCP_STATE_KEY": "0" * 64,
    "NATS_GATEWAY_PASSWORD": "pw-gateway",
    "NATS_WORKER_BUILD_PASSWORD": "pw-worker",
    "BUILD_KEY": GATEWAY_KEY,
}


def containers() -> Iterator[dict[str, Any]]:
    for each in RESOURCES:
        if "template" in each.get("spec", {}):
            yield from each["spec"]["template"]["spec"]["containers"]


def our_commands() -> list[list[str]]:
    services = [each["command"] for each in COMPOSE["services"].values() if each["image"] == "toolreeve"]
    return services + [each["args"] for each in containers() if each["image"] == "toolreeve"]


def test_compose_accepts_the_file() -> None:
    PyCompose.from_yaml((DEPLOY / "compose.yaml").read_text())

    assert set(COMPOSE["services"]) == {"gateway", "worker", "postgres", "nats"}


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_kubernetes_accepts_the_resource(resource: dict[str, Any]) -> None:
    kubernetes_validate.validate(resource, "1.31", strict=True)


def test_kustomize_has_every_file_it_names_below_it() -> None:
    generated = [name.rpartition("=")[2] for each in KUSTOMIZATION["configMapGenerator"] for name in each["files"]]

    assert all((K8S / name).is_file() and not (K8S / name).is_symlink() for name in generated)
    assert sorted(KUSTOMIZATION["resources"]) == sorted(
        path.name for path in K8S.glob("*.yaml") if path.name != "kustomization.yaml"
    )


def test_every_command_is_one_of_ours_with_its_options() -> None:
    for words in our_commands():
        context = click.Context(toolreeve)
        command = toolreeve.get_command(context, words[0])
        assert command is not None, words
        command.make_context(words[0], words[1:], parent=context)


def test_every_secret_of_a_configuration_reaches_its_container() -> None:
    for name, service in (("gateway", "gateway"), ("worker", "worker")):
        wanted = set(re.findall(r"\$\{secret:(\w+)\}", (K8S / f"{name}.toml").read_text()))
        given = set(COMPOSE["services"][service]["environment"])
        pod = next(each for each in containers() if each["name"] == service)

        assert wanted == given == {each["name"] for each in pod["env"]}


def test_no_worker_has_the_credentials_of_the_database() -> None:
    pod = next(each for each in containers() if each["name"] == "worker")

    assert "POSTGRES" not in str(COMPOSE["services"]["worker"]) + str(pod) + (K8S / "worker.toml").read_text()


def test_pods_have_longer_to_end_than_their_calls() -> None:
    settings = yaml.safe_load(str(re.search(r"drain_seconds = (\d+)", (K8S / "gateway.toml").read_text())[1]))  # type: ignore[index]
    drains = [int(words[words.index("--drain") + 1]) for words in our_commands() if "--drain" in words]
    pods = [each["spec"]["template"]["spec"] for each in RESOURCES if each["kind"] == "Deployment"]

    assert all(pod["terminationGracePeriodSeconds"] > max(settings, *drains) for pod in pods)
    assert COMPOSE["services"]["gateway"]["stop_grace_period"] == "70s"


def test_the_configuration_of_nats_is_as_generated(tmp_path: Path) -> None:
    assert (K8S / "nats.conf").read_text() == write_config(["build"], tls=False)

    done = subprocess.run([PROGRAM, "-t", "-c", K8S / "nats.conf"], env=SECRETS, capture_output=True, timeout=20)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["gateway", "worker"])
def test_the_configuration_is_valid(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toolreeve").mkdir()
    text = (K8S / f"{name}.toml").read_text().replace('"/workspace"', f'"{tmp_path}"')
    (tmp_path / "toolreeve/toolreeve.toml").write_text(text)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    found = load()

    assert found.settings.workers.url == "nats://nats:4222"
    assert not found.notices


def test_the_image_is_built_for_a_user_without_rights() -> None:
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    pods = [each["spec"]["template"]["spec"] for each in RESOURCES if each["kind"] == "Deployment"]

    assert users == ["10001"]
    assert {pod["securityContext"]["runAsUser"] for pod in pods} == {10001}
    assert lines.index("USER 10001") < lines.index('CMD ["serve"]')


@contextmanager
def process(folder: Path, name: str, nats: str, port: int, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A gateway or worker with the configuration of `deploy/`, at the addresses of this machine."""
    text = (K8S / f"{name}.toml").read_text().replace("nats://nats:4222", nats).replace("0.0.0.0", "127.0.0.1")
    text = re.sub(r"^url = \"postgresql.*$", "", text, flags=re.MULTILINE).replace("/state", f"{folder}/{name}")
    home = folder / f"home-{name}"
    (home / "toolreeve").mkdir(parents=True)
    (home / "toolreeve/toolreeve.toml").write_text(text.replace('"/workspace"', f'"{folder}/workspace"'))
    env = {**os.environ, **SECRETS, "XDG_CONFIG_HOME": str(home), "HOME": str(home), "TOOLREEVE_SERVE_PORT": str(port)}
    env |= {"BUILD_KEY": WORKER_KEY} if name == "worker" else {}
    with (folder / f"{name}.log").open("wb") as log:
        started = subprocess.Popen([sys.executable, "-m", "toolreeve", *words], env=env, stdout=log, stderr=log)
    try:
        yield started
    finally:
        started.kill()
        started.wait(10)


async def test_gateway_and_worker_run_as_deployed_and_drain_without_losing_a_call(tmp_path: Path) -> None:
    """With SQLite in place of PostgreSQL, and without containers."""
    (tmp_path / "workspace").mkdir()
    config = (K8S / "nats.conf").read_text().replace("/data", str(tmp_path / "data"))
    server = NatsServer(tmp_path / "nats", jetstream=False, config=config, env=SECRETS).start()
    port = free_port()
    serve, work = COMPOSE["services"]["gateway"]["command"], COMPOSE["services"]["worker"]["command"]
    with ExitStack() as stack:
        stack.callback(server.stop)
        gateway = stack.enter_context(process(tmp_path, "gateway", server.url, port, *serve))
        worker = stack.enter_context(process(tmp_path, "worker", server.url, port, *work))
        headers = {"authorization": f"Bearer {SECRETS['GATEWAY_TOKEN']}", "host": "localhost"}
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            assert (await until_ready(client, tmp_path)) == {"status": "ready", "missing": []}
            url = "/api/v1/tools/bash/call"
            slow = asyncio.create_task(client.post(url, json={"args": {"command": "sleep 6; echo $PPID"}}))
            found = await client.get("/api/v1/workers")
            await until_running(client)
            gateway.send_signal(signal.SIGTERM)
            worker.send_signal(signal.SIGTERM)
            answer = await slow
        assert gateway.wait(30) == 0
        assert worker.wait(30) == 0

    assert answer.json()["success"], answer.text
    assert [each["pool"] for each in found.json()["workers"]] == ["build"]


async def until_ready(client: httpx2.AsyncClient, folder: Path) -> Any:
    ends = time.monotonic() + 40
    while True:
        try:
            answer = await client.get("/ready")
            if answer.status_code == 200 and (await client.get("/api/v1/workers")).json()["workers"]:
                return answer.json()
        except httpx2.TransportError:
            pass
        assert time.monotonic() < ends, [path.read_text() for path in folder.glob("*.log")]
        await asyncio.sleep(0.1)


async def until_running(client: httpx2.AsyncClient) -> None:
    """A worker says now and then how many calls it runs, and with its first one."""
    async with asyncio.timeout(20):
        running = False
        while not running:
            await asyncio.sleep(0.05)
            running = any(each["running"] for each in (await client.get("/api/v1/workers")).json()["workers"])
