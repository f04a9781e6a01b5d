"""Allowlist of programs per role, for `execute_command`.

That tool starts programs and never a shell. Default deny: a program that is not listed, arguments that no specification
explains, and effects above the role are refused. Each role includes those before it: a viewer reads, an operator
changes the workspace, an administrator does the rest. Specifications say what arguments do; this module says only who
may start which program.
"""

from collections.abc import Iterator, Mapping

from toolreeve.core.call import Role
from toolreeve.core.command_settings import CommandRules
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.policy.shell.analysis import Analysis
from toolreeve.policy.shell.interpret.findings import CommandPart
from toolreeve.policy.shell.interpret.paths import is_under
from toolreeve.policy.shell.programs.spec import program

_VIEWER = frozenset(
    """
    ls cat head tail wc grep egrep fgrep rg find tree stat file du df pwd echo printf true false test seq sleep
    sort uniq cut tr nl tac rev fold fmt column comm join paste expand unexpand shuf expr
    diff cmp md5sum sha1sum sha256sum sha512sum b2sum cksum base64 base32 od xxd hexdump strings
    basename dirname realpath readlink date cal uname hostname whoami id groups uptime free ps nproc arch getconf
    locale which whereis jq zcat bzcat xzcat zgrep git env timeout nice xargs
    """.split()
)
_OPERATOR = frozenset(
    """
    cp mv rm mkdir rmdir touch ln tee split truncate mktemp patch sed awk
    tar gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd zip unzip
    python python3 pip pip3 poetry uv tox pytest ruff black isort flake8 pylint mypy pyright coverage
    node npm npx yarn pnpm tsc eslint prettier vitest jest vite
    make cmake ninja gcc g++ cc c++ clang clang++ clang-format nm objdump readelf size
    cargo rustc rustfmt go gofmt java javac jar mvn gradle dotnet ruby perl
    shellcheck shfmt yamllint sqlite3 yq xmllint curl wget rsync openssl pandoc identify ffprobe dot
    """.split()
)
_ADMIN = frozenset("docker docker-compose podman kubectl helm terraform ansible-playbook gh aws gcloud az psql".split())
STARTED: Mapping[Role, frozenset[str]] = {
    Role.VIEWER: _VIEWER,
    Role.OPERATOR: _VIEWER | _OPERATOR,
    Role.ADMIN: _VIEWER | _OPERATOR | _ADMIN,
}
_RANKS = {role: rank for rank, role in enumerate(STARTED)}

SHELLS = frozenset("bash sh dash zsh ksh mksh fish csh tcsh ash rbash pwsh powershell busybox toybox nu xonsh".split())
_REASONS = {
    "a shell runs anything; use the bash tool, which asks for approval": " ".join(sorted(SHELLS)),
    "it is a shell builtin, not a program":
        "eval exec source . alias export set unset trap builtin command type cd pushd popd ulimit",
    "it runs other programs unseen": "parallel watch script expect unbuffer entr socat rlwrap stdbuf setarch",
    "it changes privileges": "sudo su doas pkexec runuser newgrp setpriv capsh chroot unshare nsenter bwrap",
    "it opens raw connections": "nc ncat netcat telnet ssh scp sftp ftp nmap tcpdump",
    "it operates on devices and file systems":
        "dd mkfs mkswap fdisk parted mount umount losetup mknod mkfifo wipefs shred",
    "it changes permissions or accounts":
        "chmod chown chgrp chattr setfacl setcap passwd useradd usermod userdel visudo",
    "it stops or changes the machine":
        "shutdown reboot halt poweroff init systemctl service sysctl insmod modprobe iptables nft",
    "it starts programs that outlive the call":
        "nohup setsid crontab at batch screen tmux daemonize start-stop-daemon",
    "it needs a person at a terminal; use read_file and edit_file":
        "vi vim nvim nano emacs ed ex less more man top htop",
    "it inspects other processes": "gdb lldb strace ltrace perf bpftrace",
    "it ends processes": "kill killall pkill skill",
    "only a person may use it: it sets what tools may do": "toolreeve",
}  # fmt: skip
RUNS_ANYTHING = frozenset(name for names in list(_REASONS.values())[:4] for name in names.split())
"""Shells, builtins and programs that run whatever they are given, and those that change privileges."""
BLOCKED: Mapping[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Refused programs with the reason, so that a model does not try another spelling."""

_WRAPPERS = frozenset("env timeout nice xargs npx uv poetry python python3 coverage docker podman".split())
"""Programs whose purpose is to run the command that follows; any other program that runs one was tricked into it."""
_MOST_WRAPPED = 4
_SCRATCH = "/tmp"  # noqa: S108 - private to the command in the sandbox
_CHANGES = frozenset((EffectKind.WRITE, EffectKind.DELETE, EffectKind.SEND, EffectKind.SPEND))


def refusal(found: Analysis, role: Role, rules: CommandRules, *, root: str) -> str | None:
    """Why the command is refused, for its author; None if it is allowed. `root` is the workspace."""
    reasons = (*(_refuse_part(part, role, rules) for part in found.parts), _refuse_effects(found, role, root))
    return next(filter(None, reasons), None)


def _refuse_part(part: CommandPart, role: Role, rules: CommandRules) -> str | None:
    name = part.program
    if not name:
        return f"{part.argv[0]!r} is not a program of the system; name the interpreter: `python3 script.py`"
    if part.by and part.by not in _WRAPPERS:
        return f"{part.by}: it would run another program, {name!r}"
    if problem := _refuse_unlisted(part, role, rules):
        return problem
    if part.depth > _MOST_WRAPPED:
        return f"the command is wrapped in more than {_MOST_WRAPPED} others"
    if part.known or (name in rules.allow and program(name) is None):
        return None
    if not part.code:
        return f"{name}: {part.why}"
    return _too_low(f"{name}: it {part.why}, which", Role.OPERATOR, role)


def _refuse_unlisted(part: CommandPart, role: Role, rules: CommandRules) -> str | None:
    name = part.program
    for entry in rules.block:
        first, *rest = entry.split() or [""]
        if name == first and all(word in part.argv[1:] for word in rest):
            return f"`{entry}` is blocked by the configuration (commands.blocklist)"
    if name in SHELLS or (name in BLOCKED and not rules.allow):
        return f"{name!r} is blocked: {BLOCKED[name]}"
    if rules.allow and name not in rules.allow:
        return f"{name!r} is not in the configured allowlist (commands.allowlist)"
    least = next((each for each, names in STARTED.items() if name in names), None)
    if least is None and not rules.allow:
        return f"{name!r} is not an allowed program (commands.allowlist)"
    return _too_low(repr(name), least or Role.OPERATOR, role)


def _too_low(what: str, least: Role, role: Role) -> str | None:
    if _RANKS[role] >= _RANKS[least]:
        return None
    return f"{what} needs the role {least.value}, this call has the role {role.value}"


def _refuse_effects(found: Analysis, role: Role, root: str) -> str | None:
    it = f"{found.parts[0].program}: it" if len(found.parts) == 1 else "it"
    if found.danger is DangerLevel.CRITICAL:
        return f"{it} {found.reason}, which is refused to every role"
    for least, doing in _needed(found, root):
        if problem := _too_low(f"{it} {doing}, which", least, role):
            return problem
    return None


def _needed(found: Analysis, root: str) -> Iterator[tuple[Role, str]]:
    """The changes of the command, each with the lowest role that may make them."""
    for effect in found.effects:
        if effect.kind in _CHANGES and effect not in found.kept:
            yield _who_may(effect, root), f"{_DOING[effect.kind]} {effect.target}"
    for danger, reason in found.alarms:
        if danger > DangerLevel.LOW:
            yield Role.OPERATOR, reason


def _who_may(effect: Effect, root: str) -> Role:
    if effect.kind in (EffectKind.SEND, EffectKind.SPEND):
        return Role.OPERATOR
    return Role.OPERATOR if is_under(effect.target, root) or is_under(effect.target, _SCRATCH) else Role.ADMIN


_DOING = {
    EffectKind.WRITE: "writes",
    EffectKind.DELETE: "deletes",
    EffectKind.SEND: "sends data to",
    EffectKind.SPEND: "spends",
}
