"""Wrappers: a value never chooses the program that another program starts, nor becomes code behind one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolreeve.core import evaluators
from toolreeve.policy.shell import programs
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.template import compile_script

COMPILED = Path(programs.__file__).with_name("compiled.json")
RUNNING = frozenset({"wrapper", "command", "env", "flock", "xargs", "watch", "shell"})
"""Handlers of the shell analysis for programs that run the program in their arguments."""


def test_every_wrapper_of_the_shell_analysis_is_known_to_the_template_checks() -> None:
    analysed = json.loads(COMPILED.read_text())
    runners = {name for name, fields in analysed.items() if fields.get("judge") in RUNNING}
    launchers = {name for name, fields in analysed.items() if any(_runs(each) for each in _subcommands(fields))}

    assert len(runners) > 20
    assert runners - evaluators.WRAPPERS.keys() - evaluators.SHELLS - evaluators.JOINING == set()
    assert runners & evaluators.DATA == set()
    assert launchers == {"poetry", "uv"}
    assert launchers - evaluators.LAUNCHERS == set()


def _runs(fields: dict[str, Any]) -> bool:
    return fields.get("judge") in RUNNING


def _subcommands(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for value in fields.get("sub", {}).values():
        if isinstance(value, dict):
            yield value
            yield from _subcommands(value)


STARTED = [
    "aa-exec -p profile",
    "apptainer exec image.sif",
    "arch -x86_64",
    "cgexec -g cpu:a",
    "choom -n 5 --",
    "chpst -u user",
    "chronic",
    "coresched new --",
    "daemonize -p pid",
    "docker exec box",
    "docker run --rm image",
    "kubectl exec pod --",
    "distrobox-enter -n box --",
    "dtach -n socket",
    "envdir dir",
    "eatmydata",
    "fakechroot",
    "firejail --quiet",
    "flatpak-spawn --host",
    "genv A=b",
    "gnice -n 5",
    "gstdbuf -o L",
    "gtime -f %e",
    "gtimeout 5",
    "gxargs",
    "ifne -n",
    "ionice -c 3",
    "ip netns exec blue",
    "linux32",
    "lxc-attach -n box --",
    "mpirun -n 4",
    "nsjail -Mo --",
    "perf stat",
    "perf record -o out",
    "prlimit --nofile=5",
    "proot -r root",
    "proxychains4 -f conf",
    "pseudo",
    "rtk",
    "run0 --user=a",
    "runcon -t type_t",
    "s6-setuidgid user",
    "schroot -c box --",
    "setarch x86_64",
    "setuidgid user",
    "singularity exec image.sif",
    "softlimit -m 5",
    "srun -n 4",
    "strace -o out",
    "strace -f -o out",
    "systemd-cat -t tag",
    "systemd-nspawn -D root",
    "systemd-run -p A=b --user",
    "taskset -c 0,1",
    "torsocks -u a",
    "trickle -d 5",
    "tsp -L label",
    "uclampset -m 5",
    "unbuffer -p",
    "uname26",
    "unshare -r --map-user 5",
    "valgrind --tool=none",
    "vglrun",
    "watchexec -e py",
    "xvfb-run -s screen",
]


@pytest.mark.parametrize("started", STARTED)
@pytest.mark.parametrize("behind", ['"{{x}}"', '"{{x}}" -v', 'sh -c "{{x}}"', 'nohup "{{x}}"', 'env "{{x}}"'])
def test_a_value_neither_chooses_a_program_behind_a_wrapper_nor_is_code_there(started: str, behind: str) -> None:
    with pytest.raises(TemplateProblem):
        compile_script(f"{started} {behind}", {})


@pytest.mark.parametrize(
    "script",
    [
        'chronic grep -c x "{{x}}"',
        'env -i LC_ALL=C sort "{{x}}"',
        'gtimeout 5 grep x "{{x}}"',
        'ionice -c 3 -t du -s "{{x}}"',
        'nice -5 du "{{x}}"',
        'nohup du "{{x}}"',
        'setarch x86_64 -R ls "{{x}}"',
        'setsid -w ls "{{x}}"',
        'strace -f -o out ls "{{x}}"',
        'sudo -nE ls "{{x}}"',
        'systemd-run --user --pipe --wait ls "{{x}}"',
        'taskset -c 0,1 ls "{{x}}"',
        'time -p ls "{{x}}"',
        'timeout -k 5 10 ls "{{x}}"',
        'unbuffer ls "{{x}}"',
        'unshare -rn ls "{{x}}"',
        'xargs -0 -n1 -- echo "{{x}}"',
        'nsenter --unheard-of 1 -- ls "{{x}}"',
    ],
)
def test_a_value_is_data_for_an_ordinary_program_behind_a_wrapper(script: str) -> None:
    compile_script(script, {})
