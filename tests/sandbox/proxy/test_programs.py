"""The usual programs work through the proxy with the usual variables."""

import asyncio
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.network import Answer, web_server
from tests.sandbox.proxy.proxy_client import proxy
from toolreeve.sandbox.proxy.server import proxy_environment


async def run(*argv: str, port: int, cwd: Path) -> str:
    """Run a program with nothing but the proxy's variables and a home of its own; give what it prints."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"} | proxy_environment(port)
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.timeout(60):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_curl_works_through_it_with_the_usual_variables(tmp_path: Path) -> None:
    async with (
        web_server(lambda got: Answer(body=got.method.encode())) as web,
        proxy(f"open.example:{web.port}") as via,
    ):
        url = f"http://open.example:{web.port}/"

        assert await run("curl", "-sS", url, port=via.port, cwd=tmp_path) == "GET"
        assert await run("curl", "-sS", "-d", "x" * 5000, url, port=via.port, cwd=tmp_path) == "POST"
        assert await run("curl", "-sS", "-p", url, port=via.port, cwd=tmp_path) == "GET"
        socks = ("curl", "-sS", "-x", f"socks5h://127.0.0.1:{via.port}", url)
        assert await run(*socks, port=via.port, cwd=tmp_path) == "GET"
        event = await via.first(4)
        assert [event["protocol"] for event in event] == ["http", "http", "connect", "socks5"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The files of a repository with one commit, as a plain web server would offer them."""
    origin = tmp_path / "origin"
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (
        ("init", "-q", str(origin)),
        ("-C", str(origin), *identity, "commit", "-q", "--allow-empty", "-m", "first"),
        ("-C", str(origin), "update-server-info"),
    ):
        subprocess.run(["git", *command], check=True, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    return origin / ".git"


async def test_git_clones_through_it(tmp_path: Path, repository: Path) -> None:
    def serve(path: str) -> Answer:
        file = repository / path.partition("?")[0].lstrip("/").removeprefix("repo/")
        return Answer(body=file.read_bytes()) if file.is_file() else Answer(status=404)

    async with web_server(lambda got: serve(got.path)) as web, proxy(f"open.example:{web.port}") as via:
        url = f"http://open.example:{web.port}/repo"
        await run("git", "clone", "-q", url, "copy", port=via.port, cwd=tmp_path)

    assert "first" in await run("git", "-C", "copy", "log", "--oneline", port=1, cwd=tmp_path)


async def test_pip_downloads_through_it(tmp_path: Path) -> None:
    wheel = tmp_path / "built" / "reeve_probe-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    make_wheel(wheel)

    def serve(path: str) -> Answer:
        if path == "/simple/reeve-probe/":
            body = f'<a href="/files/{wheel.name}">{wheel.name}</a>'.encode()
            return Answer(body=body, headers={"content-type": "text/html"})
        return Answer(body=wheel.read_bytes()) if path == f"/files/{wheel.name}" else Answer(status=404)

    async with web_server(lambda got: serve(got.path)) as web, proxy(f"open.example:{web.port}") as via:
        index = f"http://open.example:{web.port}/simple"
        pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check")
        await run(*pip, "-i", index, "--trusted-host", "open.example", "reeve-probe", port=via.port, cwd=tmp_path)

    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def make_wheel(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        info = "reeve_probe-1.0.dist-info"
        archive.writestr("reeve_probe.py", "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: reeve-probe\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


async def test_npm_fetches_through_it(tmp_path: Path) -> None:
    package = json.dumps({"name": "reeve-probe", "version": "1.0.0"}).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("package/package.json")
        member.size = len(package)
        archive.addfile(member, io.BytesIO(package))

    async with web_server() as web, proxy(f"open.example:{web.port}") as via:
        registry = f"http://open.example:{web.port}"
        version = json.loads(package) | {"dist": {"tarball": f"{registry}/reeve-probe.tgz"}}
        listing = {"name": "reeve-probe", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        files = {"/reeve-probe": json.dumps(listing).encode(), "/reeve-probe.tgz": packed.getvalue()}
        web.respond = lambda got: Answer(body=files[got.path]) if got.path in files else Answer(status=404)
        quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts")
        await run("npm", "install", *quiet, "--registry", registry, "reeve-probe", port=via.port, cwd=tmp_path)

    assert (tmp_path / "node_modules/reeve-probe/package.json").read_bytes() == package
