"""Wrappers: programs that run a program named in their arguments. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolreeve.core.evaluators.names import words


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs the program named in its arguments, after `operands` of its own.

    `flags` are options that take no word, `valued` those that take one, as data, and `paired` those that take two. Any
    other option may take a word or not: both readings are checked.
    """

    operands: int = 0
    valued: frozenset[str] = frozenset()
    assigns: bool = False
    paired: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()

    def is_flag(self, option: str) -> bool:
        """Whether it certainly takes no word: `--name=value`, a flag, or a cluster of flags."""
        if option in self.flags or (option.startswith("--") and "=" in option):
            return True
        if option.startswith("--") or len(option) < 2:
            return False
        return all(f"-{letter}" in self.flags for letter in option[1:]) or option[:2] in self.valued


def _wrapper(
    operands: int = 0, valued: str = "", *, flags: str = "", assigns: bool = False, paired: str = ""
) -> Wrapper:
    return Wrapper(operands, words(valued), assigns, words(paired), words(flags))


_DIGITS = " ".join(f"-{digit}" for digit in range(10))
_SETARCH = "-B -F -I -L -R -S -T -X -Z -3 -v --32bit --3gb --4gb --addr-no-randomize --uname-2.6 --verbose"

WRAPPERS: Mapping[str, Wrapper] = {
    "arch": _wrapper(flags="-32 -64 -arm64 -arm64e -i386 -x86_64 -x86_64h", valued="-arch"),
    "busybox": _wrapper(),
    "builtin": _wrapper(),
    "caffeinate": _wrapper(valued="-t -w", flags="-d -i -m -s -u"),
    "chronic": _wrapper(flags="-e -v"),
    "command": _wrapper(flags="-p -v -V"),
    "env": _wrapper(
        valued="-u -C --unset --chdir", flags="-i -0 -v - --ignore-environment --null --debug", assigns=True
    ),
    "xargs": _wrapper(
        valued="-I -n -P -d -L -s -E -a --max-args --max-procs --delimiter --max-lines --arg-file",
        flags="-0 -o -r -t -x -p --null --no-run-if-empty --verbose --exit --open-tty --interactive -i --replace",
    ),
    "timeout": _wrapper(1, "-s -k --signal --kill-after", flags="-f -v --foreground --preserve-status --verbose"),
    "nice": _wrapper(valued="-n --adjustment", flags=_DIGITS),
    "nohup": _wrapper(),
    "ionice": _wrapper(valued="-c -n -p --class --classdata", flags="-t --ignore"),
    "setsid": _wrapper(flags="-c -f -w --ctty --fork --wait"),
    "stdbuf": _wrapper(valued="-i -o -e --input --output --error"),
    "time": _wrapper(valued="-f -o --format --output", flags="-a -l -p -q -v --append --portability --quiet --verbose"),
    "exec": _wrapper(valued="-a", flags="-c -l"),
    "sudo": _wrapper(
        valued="-u -g -h -p -C -r -t -T -U -D --user --group --chdir",
        flags="-A -b -E -H -K -k -n -P -S --askpass --background --non-interactive --preserve-env --set-home --stdin",
        assigns=True,
    ),
    "doas": _wrapper(valued="-u -C", flags="-n"),
    "runuser": _wrapper(valued="-u -g -G"),
    "gosu": _wrapper(1),
    "su-exec": _wrapper(1),
    "fakeroot": _wrapper(valued="-s -i -b"),
    "flock": _wrapper(
        1,
        "-w -E --timeout --conflict-exit-code",
        flags="-e -F -n -o -s -u -x --close --exclusive --nb --no-fork --nonblock --shared --unlock --verbose",
    ),
    "chroot": _wrapper(1),
    "choom": _wrapper(valued="-n -p --adjust --pid"),
    "taskset": _wrapper(1, flags="-a -c -p --all-tasks --cpu-list --pid"),
    "chrt": _wrapper(1, "-T -P -D", flags="-a -b -d -f -i -m -o -R -r -v"),
    "numactl": _wrapper(valued="-N -m -C -i -p", flags="-a -l --all --localalloc"),
    "unshare": _wrapper(
        valued="-S -G -w --setuid --setgid --wd",
        flags="-C -c -f -i -m -n -p -r -T -U -u --cgroup --fork --ipc --keep-caps --kill-child --map-auto "
        "--map-current-user --map-root-user --mount --mount-proc --net --pid --time --user --uts",
    ),
    "nsenter": _wrapper(
        valued="-t -S -G --target --setuid --setgid",
        flags="-a -C -F -i -m -n -p -T -U -u --all --cgroup --ipc --mount --net --no-fork --pid --preserve-credentials "
        "--time --user --uts",
    ),
    "setpriv": _wrapper(
        valued="--reuid --regid --groups --securebits --selinux-label",
        flags="--clear-groups --init-groups --keep-groups --no-new-privs --nnp --reset-env",
    ),
    "prlimit": _wrapper(valued="-p --pid"),
    "bwrap": _wrapper(
        valued="--chdir --uid --gid --hostname --dir --tmpfs --proc --dev --unsetenv --mqueue --remount-ro --lock-file "
        "--sync-fd --seccomp --add-seccomp-fd --block-fd --userns-block-fd --info-fd --json-status-fd --userns --pidns "
        "--exec-label --file-label --cap-add --cap-drop --perms --size --args --argv0 --overlay-src --tmp-overlay",
        paired="--bind --bind-try --dev-bind --dev-bind-try --ro-bind --ro-bind-try --setenv --symlink --file "
        "--bind-data --ro-bind-data --bind-fd --ro-bind-fd --chmod",
        flags="--as-pid-1 --assert-userns-disabled --clearenv --die-with-parent --disable-userns --new-session "
        "--share-net --unshare-all --unshare-cgroup --unshare-cgroup-try --unshare-ipc --unshare-net --unshare-pid "
        "--unshare-user --unshare-user-try --unshare-uts",
    ),
    "firejail": _wrapper(flags="--private --quiet --noprofile --nonewprivs --noroot --seccomp --caps.drop=all"),
    "strace": _wrapper(
        valued="-e -p -s -P -u", flags="-C -c -D -d -f -h -i -k -n -q -r -T -t -V -v -w -x -y -Z -z --follow-forks"
    ),
    "ltrace": _wrapper(valued="-o -e -p -s -u", flags="-b -C -c -f -i -L -r -S -T -t"),
    "valgrind": _wrapper(flags="-q -v --quiet --verbose"),
    "faketime": _wrapper(1, flags="-f -m --exclude-monotonic"),
    "rlwrap": _wrapper(valued="-f -H -p -s"),
    "cpulimit": _wrapper(valued="-l -p -e", flags="-b -f -q -v -z"),
    "systemd-run": _wrapper(
        valued="-u --unit --slice --uid --gid",
        flags="-d -G -P -q -r -t --collect --no-ask-password --no-block --pipe --pty --quiet --remain-after-exit "
        "--same-dir --scope --system --user --wait",
    ),
    "unbuffer": _wrapper(flags="-p"),
    "xvfb-run": _wrapper(flags="-a -l --auto-servernum --listen-tcp"),
    "npx": _wrapper(flags="-q -y --no --no-install --offline --prefer-offline --quiet --yes"),
    "uvx": _wrapper(flags="-n -q -v --isolated --no-cache --offline --quiet --verbose"),
    **{name: _wrapper(1) for name in words("coresched envdir envuidgid s6-envdir s6-setuidgid setlock setuidgid")},
    **{
        name: _wrapper(flags=_SETARCH)
        for name in words(
            """
            aarch64 alpha arm64 armv7l armv8l i386 i486 i586 i686 linux32 linux64 mips mips64 parisc ppc ppc32 ppc64
            ppc64le riscv64 s390 s390x setarch sparc sparc64 uname26 x86_64
            """
        )
    },
    **{
        name: _wrapper()
        for name in words(
            """
            aa-exec abduco bunx catatonit catchsegv ccache cgexec chpst daemon daemonize dbus-launch dbus-run-session
            detach distcc distrobox-enter dtach dumb-init eatmydata entr fakechroot flatpak-spawn gamemoderun heaptrack
            host-spawn ifne kdesu ld-linux-x86-64.so.2 ld.so lxc-attach lxc-execute mangohud minijail0 mpiexec mpirun
            nix-shell nq nsjail numad optirun pkexec please pnpx primusrun proot proxychains proxychains4 pseudo
            qemu-x86_64 rtk run0 runcon s6-applyuidgid s6-softlimit salloc sbatch sccache schroot sem softlimit srun
            ssh-agent start-stop-daemon systemd-cat systemd-inhibit systemd-nspawn tini torify torsocks toybox trickle
            tsocks tsp uclampset uftrace vglrun wine winpty
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
