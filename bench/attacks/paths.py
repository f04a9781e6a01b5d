"""Attacks on containment: paths that lead out of the workspace.

Canaries lie around the workspace; none may be read, written or resolved to. Only canaries and made-up names are ever
read: a payload that names a real file of the machine is resolved, not opened.
"""

import asyncio
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from bench.attacks.outcome import Tally
from toolreeve import Toolreeve
from toolreeve.config import Settings, State
from toolreeve.config import Workspace as WorkspaceSettings
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ToolError
from toolreeve.guard.files.workspace import WorkspaceFiles

CANARY = "CANARY-7f3a"
SWAP_SECONDS = 1.5
MOST_WRITES = 20
READS_PER_WRITE = 20
CALL = ToolCall(tool="attack", args={})


class Ground:
    """A workspace some levels down, with a canary beside every directory above it and links that lead out of it."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.root = top / "a" / "b" / "work"
        (self.root / "docs").mkdir(parents=True)
        (self.root / "docs" / "note.txt").write_text("inside")
        above = [top, top / "a", top / "a" / "b"]
        self.canaries = [directory / "canary" / "secret.txt" for directory in above]
        self.canaries += [directory / "secret.txt" for directory in (*above, top / "a" / "b" / "work-sibling")]
        for canary in self.canaries:
            canary.parent.mkdir(exist_ok=True)
            canary.write_text(CANARY)
        self._plant()
        self.outside = self._listing()

    def _plant(self) -> None:
        root = self.root
        canary = self.canaries[0]
        for name, target in {
            "link-file": canary,
            "link-parent": canary.parent,
            "link-relative": Path("../canary"),
            "link-dangling": self.top / "new.txt",
            "link-chain": Path("link-parent"),
            "link-proc": Path("/proc/self/root"),
            "link-root": Path("/"),
            "link-env": Path(".env"),
            "link-ssh": Path(".ssh"),
        }.items():
            (root / name).symlink_to(target)
        os.mkfifo(root / "fifo")
        (root / ".env").write_text(CANARY)
        (root / ".ssh").mkdir()
        (root / ".ssh" / "id_rsa").write_text(CANARY)

    def _listing(self) -> dict[str, str]:
        """Everything outside the workspace, with its content."""
        return {
            str(path): path.read_text() if path.is_file() else ""
            for path in sorted(self.top.rglob("*"))
            if not path.is_relative_to(self.root)
        }

    def is_untouched(self) -> bool:
        return self._listing() == self.outside

    def fill(self, payload: str) -> Iterator[str]:
        """The payload aimed at a canary: as seen from `/`, and as seen from a directory above the workspace."""
        if "{FILE}" not in payload:
            yield payload.replace("{ROOT}", str(self.root))
            return
        for target in (str(self.canaries[0]).lstrip("/"), "canary/secret.txt", "secret.txt"):
            yield payload.replace("{FILE}", target).replace("{ROOT}", str(self.root))


def spellings(payload: str) -> list[str]:
    """The payload as given, decoded once and twice, and with backslashes taken for slashes."""
    once = unquote(payload, errors="replace")
    latin = unquote(payload, encoding="latin-1")
    found = [payload, once, unquote(once, errors="replace"), latin]
    found += [each.replace("\\", "/") for each in found]
    found += [each.replace("0x2e", ".").replace("0x2f", "/").replace("0x5c", "/") for each in found]
    return list(dict.fromkeys(found))


async def run(corpora: Path | None) -> list[Tally]:
    with tempfile.TemporaryDirectory(prefix="toolreeve-attack-") as top:
        ground = Ground(Path(top) / "ground")
        settings = Settings(
            workspace=WorkspaceSettings(dir=str(ground.root)), state=State(dir=str(Path(top) / "state"))
        )
        tallies = []
        async with Toolreeve(settings=settings) as reeve:
            for name, payloads in _lists(corpora):
                tallies.append(await _attack(name, payloads, ground, reeve))
        tallies += [await asyncio.to_thread(_swap, ground, backend) for backend in ("openat2", "walk")]
        return tallies


def _lists(corpora: Path | None) -> Iterator[tuple[str, list[str]]]:
    lines = (Path(__file__).parent / "paths.txt").read_text().splitlines()
    yield "own", [line for line in lines if line and not line.startswith("#")]
    if corpora is None:
        return
    lists: dict[str, list[str]] = {}
    for line in (corpora / "path_traversal.jsonl").read_text().splitlines():
        row = json.loads(line)
        lists.setdefault(row["list"], []).append(row["payload"])
    yield from sorted(lists.items())


async def _attack(name: str, payloads: Sequence[str], ground: Ground, reeve: Toolreeve) -> Tally:
    tally = Tally(name=name, payloads=len(payloads))
    guards = [WorkspaceFiles(ground.root, backend="openat2"), WorkspaceFiles(ground.root, backend="walk")]
    seen: set[str] = set()
    for payload in payloads:
        for aimed in ground.fill(payload):
            for path in spellings(aimed):
                if path not in seen:
                    seen.add(path)
                    await _try(path, tally, ground, reeve, guards, real="{FILE}" not in payload)
    if not ground.is_untouched():
        tally.escaped.append("something outside the workspace was changed")
    for guard in guards:
        guard.close()
    return tally


async def _try(
    path: str, tally: Tally, ground: Ground, reeve: Toolreeve, guards: Sequence[WorkspaceFiles], *, real: bool
) -> None:
    tally.attempts += 1
    resolved = [_resolve(guard, path) for guard in guards]
    if any(each is not None and not f"{each}/".startswith(f"{ground.root}/") for each in resolved):
        tally.escaped.append(f"resolved: {path!r}")
        return
    if not real or all(each is not None for each in resolved) or path.startswith(("link-", "fifo", ".", "docs")):
        result = await reeve.call("read_file", path=path)
        if CANARY in json.dumps(result.to_dict()):
            tally.escaped.append(f"read: {path!r}")
            return
    await _write(path, tally, guards, refused=None in resolved)
    tally.refused += None in resolved
    tally.harmless += None not in resolved


def _resolve(guard: WorkspaceFiles, path: str) -> str | None:
    try:
        return guard.resolve(path)
    except ToolError:
        return None


async def _write(path: str, tally: Tally, guards: Sequence[WorkspaceFiles], *, refused: bool) -> None:
    """What may not be resolved must not be written either; of the others a few are written, to see where they end."""
    if not refused and tally.harmless >= MOST_WRITES:
        return
    for guard in guards:
        try:
            await guard.write(CALL, path, b"overwritten")
        except ToolError:
            continue
        if refused:
            tally.escaped.append(f"written: {path!r}")


def _swap(ground: Ground, backend: str) -> Tally:
    """Read and write below a directory that is exchanged for a link to a canary all the while."""
    tally = Tally(name=f"swap ({backend})", payloads=1)
    inside, link, spare = (ground.root / name for name in ("swapped", "swapped-link", "swapped-spare"))
    inside.mkdir(exist_ok=True)
    (inside / "secret.txt").write_text("inside")
    link.unlink(missing_ok=True)
    link.symlink_to(ground.canaries[0].parent)
    guard = WorkspaceFiles(ground.root, backend=backend)  # type: ignore[arg-type]

    def swap() -> None:
        inside.rename(spare)
        link.rename(inside)
        inside.rename(link)
        spare.rename(inside)

    with _Repeating(swap) as swapping:
        ends = time.monotonic() + SWAP_SECONDS
        while time.monotonic() < ends:
            for _ in range(READS_PER_WRITE):
                _read_swapped(guard, tally)
            with suppress(ToolError):
                asyncio.run(guard.write(CALL, "swapped/secret.txt", b"inside", create_dirs=False))
    guard.close()
    tally.payloads = swapping.count
    if not ground.is_untouched():
        tally.escaped.append("something outside the workspace was changed")
    return tally


def _read_swapped(guard: WorkspaceFiles, tally: Tally) -> None:
    tally.attempts += 1
    try:
        data = guard.read("swapped/secret.txt", 100).data
    except ToolError:
        tally.refused += 1
        return
    if CANARY.encode() in data:
        tally.escaped.append("read through a directory that was swapped")
    tally.harmless += 1


class _Repeating:
    """Does something over and over in a thread until left."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0

    def _run(self) -> None:
        while not self._done.is_set():
            self._step()
            self.count += 1

    def __enter__(self) -> "_Repeating":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
