"""Which programs treat an argument or their input as code, and how do they take it? Data, with the reason in each name.

Not a list of what is allowed: the sandbox confines whatever runs. It only tells where a value would be more than data.
"""

from collections.abc import Mapping
from dataclasses import dataclass

SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "tcsh", "csh"})

EVALUATING_BUILTINS = frozenset(
    {"eval", "source", ".", "let", "unset", "read", "mapfile", "readarray", "trap", "alias", "bind", "complete"}
    | {"compgen", "compopt", "enable", "getopts", "coproc", "hash", "fc", "history", "shopt", "wait", "jobs", "set"}
)
"""Builtins that take their arguments for code, for names of variables, or for switches of the shell itself."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs the program named in its arguments, behind `operands` of its own. `valued` are options that
    take the next word."""

    operands: int = 0
    valued: frozenset[str] = frozenset()
    assigns: bool = False


def _wrapper(operands: int = 0, valued: str = "", *, assigns: bool = False) -> Wrapper:
    return Wrapper(operands, frozenset(valued.split()), assigns)


WRAPPERS: Mapping[str, Wrapper] = {
    "env": _wrapper(valued="-u -C --unset --chdir", assigns=True),
    "xargs": _wrapper(valued="-I -n -P -d -L -s -E -a --max-args --max-procs --delimiter --replace --arg-file"),
    "timeout": _wrapper(1, "-s -k --signal --kill-after"),
    "nice": _wrapper(valued="-n --adjustment"),
    "ionice": _wrapper(valued="-c -n -p --class --classdata"),
    "nohup": _wrapper(),
    "setsid": _wrapper(),
    "stdbuf": _wrapper(valued="-i -o -e --input --output --error"),
    "time": _wrapper(valued="-f -o --format --output"),
    "command": _wrapper(),
    "builtin": _wrapper(),
    "exec": _wrapper(valued="-a"),
    "sudo": _wrapper(valued="-u -g -h -p -C -r -t -T -U --user --group", assigns=True),
    "doas": _wrapper(valued="-u -C"),
    "flock": _wrapper(1, "-w -E --timeout --conflict-exit-code"),
    "chroot": _wrapper(1),
    "taskset": _wrapper(1, "-c --cpu-list"),
    "chrt": _wrapper(1, "-p"),
    "unshare": _wrapper(),
    "nsenter": _wrapper(valued="-t --target"),
    "setpriv": _wrapper(),
    "prlimit": _wrapper(),
    "strace": _wrapper(valued="-o -e -p -s -P"),
    "ltrace": _wrapper(valued="-o -e -p -s"),
    "busybox": _wrapper(),
    "toybox": _wrapper(),
    "ld.so": _wrapper(),
}

REPARSING = frozenset(
    {"ssh", "su", "watch", "parallel", "script", "at", "batch", "crontab", "screen", "tmux", "expect"}
)
"""Programs that hand their arguments, joined, to a shell, here or elsewhere."""

CODE_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "python": ("c",),
    "perl": ("e", "E", "M", "m"),
    "ruby": ("e", "r"),
    "node": ("e", "p", "r"),
    "nodejs": ("e", "p", "r"),
    "php": ("r", "B", "E", "R"),
    "lua": ("e", "l"),
    "R": ("e",),
    "Rscript": ("e",),
    "julia": ("e", "E"),
    "osascript": ("e",),
    "vim": ("c",),
    "ex": ("c",),
    "gdb": ("x",),
    "mysql": ("e",),
    "mariadb": ("e",),
    "bun": ("e",),
    "deno": ("e",),
}
"""Interpreters, and the letters of the options behind which a program of theirs stands."""

CODE_OPERAND: Mapping[str, frozenset[str]] = {
    "awk": frozenset({"-v", "-F", "--assign", "--field-separator"}),
    "gawk": frozenset({"-v", "-F", "--assign", "--field-separator"}),
    "mawk": frozenset({"-v", "-F"}),
    "nawk": frozenset({"-v", "-F"}),
    "sed": frozenset({"-l", "--line-length"}),
    "gsed": frozenset({"-l", "--line-length"}),
}
"""Programs whose first operand is code; and their options that take a word which is none."""

CODE_INPUT = frozenset(
    {
        *SHELLS,
        *CODE_OPTIONS,
        "psql",
        "sqlite3",
        "ed",
        "ex",
        "dc",
        "m4",
        "gnuplot",
        "tclsh",
        "ftp",
        "sftp",
        "at",
        "batch",
    }
)
"""Programs that find code, or commands which run other programs, in their input."""

FORBIDDEN_BEGINNINGS: Mapping[str, tuple[str, ...]] = {
    "psql": ("\\",),
    "sqlite3": (".",),
    "test": ("-v", "-R"),
    "[": ("-v", "-R"),
}
"""What an argument of the program may not begin with: there it would be a command of the program's own."""

OPTIONS_RUN: Mapping[str, frozenset[str]] = {
    "find": frozenset(
        [
            "-name",
            "-iname",
            "-path",
            "-ipath",
            "-wholename",
            "-regex",
            "-iregex",
            "-type",
            "-size",
            "-newer",
            "-maxdepth",
            "-mindepth",
            "-mtime",
            "-mmin",
            "-atime",
            "-ctime",
            "-user",
            "-group",
            "-perm",
            "-samefile",
            "-printf",
            "-fprint",
            "-lname",
            "-links",
            "-inum",
        ]
    ),
    "tar": frozenset(["-f", "-C", "--file", "--directory", "--exclude"]),
    "git": frozenset(
        ["-n", "--author", "--grep", "--since", "--until", "--after", "--before", "--format", "--max-count", "-S", "-G"]
    ),
    "rsync": frozenset({"--exclude", "--include"}),
    "zip": frozenset(),
    "unzip": frozenset({"-d", "-x"}),
    "7z": frozenset(),
    "man": frozenset(),
    "sort": frozenset({"-k", "-t", "-o"}),
    "split": frozenset({"-b", "-l", "-n", "-a"}),
    "wget": frozenset({"-O", "-o", "--header", "--user-agent"}),
    "scp": frozenset({"-P", "-i"}),
    "sftp": frozenset(),
    "tcpdump": frozenset({"-i", "-c", "-n"}),
    "make": frozenset({"-C", "-f", "-j"}),
    "gcc": frozenset({"-o", "-I", "-L"}),
    "cc": frozenset({"-o", "-I", "-L"}),
    "docker": frozenset(),
    "kubectl": frozenset(),
    "systemd-run": frozenset(),
    "npm": frozenset(),
    "npx": frozenset(),
    "pip": frozenset(),
    "apt-get": frozenset(),
    "psql": frozenset(
        [
            "-c",
            "-d",
            "-h",
            "-p",
            "-U",
            "-f",
            "-v",
            "-o",
            "-F",
            "-R",
            "--command",
            "--dbname",
            "--host",
            "--port",
            "--username",
            "--file",
            "--set",
        ]
    ),
    "sqlite3": frozenset({"-separator", "-nullvalue", "-newline"}),
    "vim": frozenset(),
    "less": frozenset(),
    "python": frozenset(),
    "perl": frozenset(),
    "ruby": frozenset(),
    "node": frozenset(),
    "php": frozenset(),
    "awk": frozenset({"-v", "-F"}),
    "gawk": frozenset({"-v", "-F"}),
    "sed": frozenset(),
}
"""Programs that an option can make run something; and their options that take the next word, whatever it is."""

TELLING_VARIABLES = [
    "PATH",
    "IFS",
    "ENV",
    "BASH_*",
    "LD_*",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "*PAGER",
    "*EDITOR",
    "VISUAL",
    "BROWSER",
    "GIT_*",
    "PERL5*",
    "PERLLIB",
    "PYTHON*",
    "NODE_*",
    "RUBY*",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "LESSOPEN",
    "LESSCLOSE",
    "TAR_OPTIONS",
    "MAKEFLAGS",
    "GLOBIGNORE",
    "CDPATH",
    "GCONV_PATH",
    "LOCPATH",
    "*_ASKPASS",
    "PSQLRC",
    "SHELL",
    "FCEDIT",
    "EXECIGNORE",
    "CURL_HOME",
    "SQLITE_HISTORY",
]
"""Variables that make the shell or common programs run something."""


def plain_name(program: str) -> str:
    """`/usr/bin/python3.11` is python."""
    name = program.rsplit("/", 1)[-1]
    if name.startswith("python"):
        return "python"
    for stem in ("perl", "ruby", "lua", "php"):
        if name.startswith(stem) and name[len(stem) :].replace(".", "").isdigit():
            return stem
    return name
