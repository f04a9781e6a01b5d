"""Which programs may `execute_command` start, and for whom? Data: names by role, and what is blocked with its reason.

A role may start what the roles before it may. What stands nowhere here is refused; what is blocked is refused with the
reason, so that a model does not look for another spelling of it. Argument rules are in `arguments`.
"""

from collections.abc import Mapping

from toolreeve.core.call import Role


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VIEWER = names("""
    ls cat head tail wc grep egrep fgrep rg find tree stat file du df pwd echo printf true false test seq sleep
    sort uniq cut tr nl tac rev fold fmt column comm join paste expand unexpand shuf expr
    diff cmp md5sum sha1sum sha256sum sha512sum b2sum cksum base64 base32 od xxd hexdump strings
    basename dirname realpath readlink date cal uname hostname whoami id groups uptime free ps nproc arch getconf
    locale which whereis jq zcat bzcat xzcat zgrep git env timeout nice xargs
    """)
OPERATOR = names("""
    cp mv rm mkdir rmdir touch ln tee split truncate mktemp patch sed awk
    tar gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd zip unzip
    python python3 pip pip3 poetry uv tox pytest ruff black isort flake8 pylint mypy pyright coverage
    node npm npx yarn pnpm tsc eslint prettier vitest jest vite
    make cmake ninja gcc g++ cc c++ clang clang++ clang-format nm objdump readelf size
    cargo rustc rustfmt go gofmt java javac jar mvn gradle dotnet ruby perl
    shellcheck shfmt yamllint sqlite3 yq xmllint curl wget rsync openssl pandoc identify ffprobe dot
    """)
ADMIN = names("docker docker-compose podman kubectl helm terraform ansible-playbook gh aws gcloud az psql")
ROLES: Mapping[Role, frozenset[str]] = {
    Role.VIEWER: VIEWER,
    Role.OPERATOR: VIEWER | OPERATOR,
    Role.ADMIN: VIEWER | OPERATOR | ADMIN,
}

SHELLS = names("bash sh dash zsh ksh mksh fish csh tcsh ash rbash pwsh powershell busybox toybox nu xonsh")
_SHELL = "a shell runs anything; the bash tool is the one that does, and it asks"
_BUILTIN = "it is a command of shells, not a program"
_OTHERS = "it runs other programs unseen"
_PRIVILEGE = "it takes on other privileges"
_NETWORK = "it opens raw connections"
_DEVICES = "it works on devices and file systems"
_MODES = "it changes who may do what with files"
_MACHINE = "it stops or changes the machine"
_LATER = "it starts programs that outlive the call"
_INTERACTIVE = "it needs a person at a terminal; read_file and edit_file show and change files"
_TRACING = "it looks into other processes"
_ENDING = "it ends processes"


def _because(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


BLOCKED: Mapping[str, str] = {
    **dict.fromkeys(SHELLS, _SHELL),
    **_because(_BUILTIN, "eval exec source . alias export set unset trap builtin command type cd pushd popd ulimit"),
    **_because(_OTHERS, "parallel watch script expect unbuffer entr socat rlwrap stdbuf setarch"),
    **_because(_PRIVILEGE, "sudo su doas pkexec runuser newgrp setpriv capsh chroot unshare nsenter bwrap"),
    **_because(_NETWORK, "nc ncat netcat telnet ssh scp sftp ftp nmap tcpdump"),
    **_because(_DEVICES, "dd mkfs mkswap fdisk parted mount umount losetup mknod mkfifo wipefs shred"),
    **_because(_MODES, "chmod chown chgrp chattr setfacl setcap passwd useradd usermod userdel visudo"),
    **_because(_MACHINE, "shutdown reboot halt poweroff init systemctl service sysctl insmod modprobe iptables nft"),
    **_because(_LATER, "nohup setsid crontab at batch screen tmux daemonize start-stop-daemon"),
    **_because(_INTERACTIVE, "vi vim nvim nano emacs ed ex less more man top htop"),
    **_because(_TRACING, "gdb lldb strace ltrace perf bpftrace"),
    **_because(_ENDING, "kill killall pkill skill"),
}


def known_to(name: str) -> Role | None:
    """The least role that may start the program; None if none may."""
    return next((role for role, names in ROLES.items() if name in names), None)
