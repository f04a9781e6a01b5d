"""Attacks on YAML tools: programs that would run a value as code.

Each form in `evaluators.txt` is compiled as a template; `⏎` stands for a new line. What is not refused is run for real,
in a scratch directory, with every payload: a file called PWNED is the canary. The forms in `ordinary.txt` must load.
"""

import asyncio
import os
import subprocess
import tempfile
from pathlib import Path

from bench.attacks.outcome import Tally
from toolreeve.core.errors import ToolError
from toolreeve.scripted.shebang import PREAMBLE, VALUES
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.template import Script, compile_script

RUN = "touch PWNED"
PAYLOADS = (
    *(RUN, f"{RUN}|", f"|{RUN}", f"a[$({RUN})]", f"$({RUN})", f"`{RUN}`", f"; {RUN}", f"'; {RUN}; '", f'"; {RUN}; "'),
    *(f"&& {RUN}", f"|| {RUN} ||", f"\n{RUN}\n", f"{RUN} #", f"exec={RUN}", f"exec {RUN}", f"sh -c '{RUN}'", f"!{RUN}"),
    *(f"! {RUN}", f"shell {RUN}", f":!{RUN}", f"\\! {RUN}", f".shell {RUN}", f".system {RUN}", f"!{RUN}\nq\n"),
    *(
        f"--checkpoint-action=exec={RUN}",
        f"--checkpoint=1\n--checkpoint-action=exec={RUN}",
        "-f/dev/stdin",
        "-v",
        "-exec",
    ),
    *(f"all: ; {RUN}", f"$(shell {RUN})", f"V=$(shell {RUN})", f"alias.q=!{RUN}", f"core.fsmonitor={RUN};false"),
    *("select writefile('PWNED','x');", "'; select writefile('PWNED','x'); --", "writefile('PWNED','x')"),
    *("x' || writefile('PWNED','x') || '", f"edit('x','{RUN} #')", f"1; select edit('x','{RUN} #')"),
    *(f'system("{RUN}")', f'BEGIN{{system("{RUN}")}}', f'a=1;system("{RUN}")', f"1e {RUN}", f"s/.*/{RUN}/e"),
    *(f"/;e {RUN}\n#", f"/e;s/.*/{RUN}/e;#", f"import os; os.system('{RUN}')", f"__import__('os').system('{RUN}')"),
    *(f"'+__import__('os').system('{RUN}')+'", f"require('child_process').execSync('{RUN}')", f"-e{RUN}"),
    *(f"-Mstrict;system('{RUN}')", f"-esystem('{RUN}')", f"ProxyCommand={RUN}", f"EXEC:{RUN}", f"SYSTEM:{RUN}"),
    "ext::sh -c touch% PWNED",
    *(f"-O{RUN};", f"O{RUN};", f"--upload-pack={RUN};", f"u{RUN};", f"--exec={RUN};", f"-x{RUN}", f"-TqTT{RUN}"),
    *(f"--use-compress-program={RUN}", f"-I{RUN}", f"--open-files-in-pager={RUN};", "--output=PWNED", "@o"),
    f'#include <stdlib.h>\nint main(){{system("{RUN}");}}',
)


def forms(name: str) -> list[str]:
    lines = (Path(__file__).parent / f"{name}.txt").read_text().splitlines()
    return [line.replace("⏎", "\n") for line in lines if line]


def canaries(script: Script) -> list[str]:
    """The payloads that were run as code."""
    return [payload for payload in PAYLOADS if _is_run(script, payload)]


def _is_run(script: Script, payload: str) -> bool:
    try:
        rendered = script.render({"x": payload, "y": "t.sh"})
    except ToolError:
        return False
    with tempfile.TemporaryDirectory(prefix="toolreeve-canary-") as place:
        held = os.memfd_create("values")
        try:
            os.write(held, rendered.data())
            os.lseek(held, 0, os.SEEK_SET)
            _run(rendered.script, held, place)
        finally:
            os.close(held)
        return any(Path(place).rglob("PWNED"))


def _run(script: str, values: int, place: str) -> None:
    try:
        subprocess.run(
            ["bash", "-c", PREAMBLE + script, "attack"],
            pass_fds=[values],
            cwd=place,
            env={VALUES: f"/dev/fd/{values}", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": place},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=10,
        )
    except subprocess.TimeoutExpired:
        return


async def run(_corpora: Path | None) -> list[Tally]:
    return [await asyncio.to_thread(_attack)]


def _attack() -> Tally:
    """Every form with every payload, and the ordinary ones, which must not be refused."""
    attacked = forms("evaluators")
    tally = Tally(name="evaluators", payloads=len(attacked))
    for form in attacked:
        tally.attempts += 1
        try:
            script = compile_script(form, {})
        except TemplateProblem:
            tally.refused += 1
            continue
        found = canaries(script)
        tally.escaped += [f"{form}: {payload!r} was run" for payload in found]
        tally.harmless += not found
    for form in forms("ordinary"):
        try:
            compile_script(form, {})
        except TemplateProblem as problem:
            tally.refused_wrongly.append(f"{form}: {problem.problem}")
    return tally
