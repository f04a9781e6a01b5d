"""Wrappers: programs that run a program named in their arguments. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolreeve.core.evaluators.names import words


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs the program named in its arguments, behind `operands` of its own.

    `valued` are options that take a word, `paired` those that take two.
    """

    operands: int = 0
    valued: frozenset[str] = frozenset()
    assigns: bool = False
    paired: frozenset[str] = frozenset()


def _wrapper(operands: int = 0, valued: str = "", *, assigns: bool = False, paired: str = "") -> Wrapper:
    return Wrapper(operands, words(valued), assigns, words(paired))


WRAPPERS: Mapping[str, Wrapper] = {
    "env": _wrapper(valued="-u -C --unset --chdir", assigns=True),
    "xargs": _wrapper(valued="-I -n -P -d -L -s -E -a --max-args --max-procs --delimiter --max-lines --arg-file"),
    "timeout": _wrapper(1, "-s -k --signal --kill-after"),
    "nice": _wrapper(valued="-n --adjustment"),
    "ionice": _wrapper(valued="-c -n -p --class --classdata"),
    "stdbuf": _wrapper(valued="-i -o -e --input --output --error"),
    "time": _wrapper(valued="-f -o --format --output"),
    "exec": _wrapper(valued="-a"),
    "sudo": _wrapper(valued="-u -g -h -p -C -r -t -T -U -D --user --group --chdir", assigns=True),
    "doas": _wrapper(valued="-u -C"),
    "runuser": _wrapper(valued="-u -g -G"),
    "gosu": _wrapper(1),
    "su-exec": _wrapper(1),
    "fakeroot": _wrapper(valued="-s -i -b"),
    "flock": _wrapper(1, "-w -E --timeout --conflict-exit-code"),
    "chroot": _wrapper(1),
    "taskset": _wrapper(1),
    "chrt": _wrapper(1, "-T -P -D"),
    "numactl": _wrapper(valued="-N -m -C -i -p"),
    "unshare": _wrapper(valued="-S -G -w --setuid --setgid --wd"),
    "nsenter": _wrapper(valued="-t -S -G --target --setuid --setgid"),
    "setpriv": _wrapper(valued="--reuid --regid --groups --securebits --selinux-label"),
    "prlimit": _wrapper(valued="-p --pid"),
    "bwrap": _wrapper(
        valued="--chdir --uid --gid --hostname --dir --tmpfs --proc --dev --unsetenv --mqueue --remount-ro --lock-file "
        "--sync-fd --seccomp --add-seccomp-fd --block-fd --userns-block-fd --info-fd --json-status-fd --userns --pidns "
        "--exec-label --file-label --cap-add --cap-drop --perms --size --args --argv0 --overlay-src --tmp-overlay",
        paired="--bind --bind-try --dev-bind --dev-bind-try --ro-bind --ro-bind-try --setenv --symlink --file "
        "--bind-data --ro-bind-data --bind-fd --ro-bind-fd --chmod",
    ),
    "firejail": _wrapper(),
    "strace": _wrapper(valued="-e -p -s -P -u"),
    "ltrace": _wrapper(valued="-o -e -p -s -u"),
    "valgrind": _wrapper(),
    "faketime": _wrapper(1),
    "rlwrap": _wrapper(valued="-f -H -p -s"),
    "cpulimit": _wrapper(valued="-l -p -e"),
    "systemd-run": _wrapper(valued="-u --unit --slice --uid --gid"),
    "systemd-inhibit": _wrapper(),
    **{
        name: _wrapper()
        for name in words(
            """
            builtin bunx busybox caffeinate catchsegv ccache cgexec chronic command daemonize dbus-launch
            dbus-run-session distcc dumb-init eatmydata entr genv gnice gstdbuf gtimeout i386 ifne
            ld-linux-x86-64.so.2 ld.so linux32 linux64 nix-shell nohup npx pkexec pnpx proxychains proxychains4
            qemu-x86_64 sccache setarch setsid ssh-agent start-stop-daemon tini torify torsocks toybox unbuffer uvx
            wine winpty x86_64 xvfb-run
            """
        )
    },
}

LAUNCHERS = words(
    """
    asdf aws-vault bundle chamber conda devbox direnv docker-compose doppler dotenv hatch heroku infisical mamba
    mise nix npm op pdm pipenv pipx pnpm poetry rye uv yarn
    """
)
"""Programs that run a program named behind `run`, `exec` or `x`."""
