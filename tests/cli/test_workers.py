"""`toolreeve workers` and `worker`: keys, the configuration of NATS, and clear errors."""

from pathlib import Path

from tests.cli.conftest import Shell
from tests.execution.workers.nats_server import NatsServer, free_port
from toolreeve.execution.workers.signing import new_key, read_key

POOLS = """
[workers]
url = "nats://127.0.0.1:{port}"
[workers.pools.build]
tools = ["shell"]
key = "${{secret:BUILD_KEY}}"
"""


def configure(shell: Shell, port: int, more: str = "") -> None:
    folder = shell.home / ".config/toolreeve"
    folder.mkdir(parents=True)
    (folder / "toolreeve.toml").write_text(POOLS.format(port=port) + more)


def test_a_key_has_a_half_for_gateways_and_one_for_workers(shell: Shell) -> None:
    made = shell.run("workers", "key", "--json").json

    assert read_key(made["worker"]).verifies(b"x", read_key(made["gateway"]).sign(b"x"))
    assert made["worker"].startswith("ed25519-public:")


def test_the_configuration_of_nats_names_the_pools(shell: Shell) -> None:
    configure(shell, 1)

    printed = shell.run("workers", "nats-config")

    assert 'user: "worker-build", password: $NATS_WORKER_BUILD_PASSWORD' in printed.out
    assert "NATS_GATEWAY_PASSWORD" in printed.err


def test_without_pools_there_is_nothing_to_configure(shell: Shell) -> None:
    assert "no pools are configured" in shell.run("workers", "nats-config").err
    assert "workers.url" in shell.run("workers").err


def test_a_nats_server_that_is_away_is_named(shell: Shell) -> None:
    port = free_port()
    configure(shell, port)

    printed = shell.run("workers")

    assert printed.status == 6
    assert f"NATS at nats://127.0.0.1:{port} (workers.url)" in printed.err


def test_pools_without_workers_are_named_also_by_doctor(shell: Shell, tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats").start()
    try:
        configure(shell, server.port)
        listed = shell.run("workers")
        checks = {(each["area"], each["name"]): each for each in shell.run("doctor", "--json").json["checks"]}
    finally:
        server.stop()

    assert "pool 'build' has no worker: start one with `toolreeve worker --pool build`" in listed.err
    assert checks["workers", "nats"]["status"] == "ok"
    assert checks["workers", "build"]["found"] == "0 workers, 0 calls waiting"


def test_a_worker_of_an_unknown_pool_names_the_known_ones(shell: Shell) -> None:
    configure(shell, 1)

    printed = shell.spawn("worker", "--pool", "biuld")

    assert "no pool 'biuld' in workers.pools (did you mean 'build'?); configured: build" in printed.err


def test_a_worker_with_an_invalid_key_names_the_setting(shell: Shell) -> None:
    configure(shell, 1)

    printed = shell.spawn("worker", "--pool", "build", env={"BUILD_KEY": "hmac:tooshort"})

    assert printed.status == 2
    assert "workers.pools.build.key: not a pool key" in printed.err
    assert "tooshort" not in printed.err


def test_a_worker_refuses_the_credentials_of_a_database(shell: Shell) -> None:
    configure(shell, 1, '[state]\nurl = "postgresql://localhost/x"\n')

    printed = shell.spawn("worker", "--pool", "build", env={"BUILD_KEY": new_key("hmac")[0]})

    assert printed.status == 2
    assert "state.url: a worker needs no database" in printed.err


def test_a_worker_without_nats_ends_and_says_why(shell: Shell) -> None:
    configure(shell, free_port())

    printed = shell.spawn("worker", "--pool", "build", env={"BUILD_KEY": new_key("hmac")[0]})

    assert printed.status == 6
    assert "(workers.url)" in printed.err


def test_a_url_of_another_kind_is_refused(shell: Shell) -> None:
    configure(shell, 1)
    path = shell.home / ".config/toolreeve/toolreeve.toml"
    path.write_text(path.read_text().replace("nats://", "http://"))

    printed = shell.run("workers")

    assert printed.status == 2
    assert "workers.url" in printed.err
