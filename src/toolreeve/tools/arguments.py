"""Which arguments make an allowed program run another one, or do what its role may not? Data only; `judging` reads it.

A long flag is refused under every abbreviation of it, for most programs accept those; a letter also inside a cluster
such as `-xzf`. A program with subcommands takes only those listed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolreeve.core.call import Role
from toolreeve.tools.programs import names

_RUNS = "it would run another program"
_WRITES = "it would write a file"
_HIDDEN = "it would take further options from a file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """`words` are whole words or what stands before `=`, `starts` the beginnings of words. `below`: only for the roles
    below that one."""

    reason: str
    flags: tuple[str, ...] = ()
    letters: str = ""
    words: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    below: Role | None = None


def _runs(flags: str = "", letters: str = "", words: str = "", starts: str = "") -> Refused:
    return Refused(
        reason=_RUNS,
        flags=tuple(flags.split()),
        letters=letters,
        words=tuple(words.split()),
        starts=tuple(starts.split()),
    )


def _writes(flags: str = "", letters: str = "", words: str = "") -> Refused:
    return Refused(
        reason=_WRITES, flags=tuple(flags.split()), letters=letters, words=tuple(words.split()), below=Role.OPERATOR
    )


_COMPILER = _runs(words="-wrapper -load -plugin -plugin-opt", starts="-fplugin -fpass-plugin -specs --specs -B @")

RULES: Mapping[str, tuple[Refused, ...]] = {
    "find": (
        _runs(words="-exec -execdir -ok -okdir"),
        _writes(words="-delete -fprint -fprint0 -fprintf -fls"),
        Refused(reason=_HIDDEN, words=("-files0-from",)),
    ),
    "sort": (_runs("--compress-program"), _writes("--output", "o")),
    "shuf": (_writes("--output", "o"),),
    "tree": (_writes("--output", "o"),),
    "rg": (_runs("--pre --hostname-bin"),),
    "date": (Refused(reason="it would set the clock", flags=("--set",), letters="s"),),
    "split": (_runs("--filter"),),
    "patch": (_runs("--ed", "e"),),
    "tar": (
        _runs(
            "--checkpoint-action --to-command --use-compress-program --info-script --new-volume-script --rsh-command "
            "--rmt-command",
            "IF",
        ),
    ),
    "zip": (_runs("--unzip-command", words="-TT", starts="-TT"),),
    "rsync": (_runs("--rsh --rsync-path --daemon", "e"),),
    "curl": (Refused(reason=_HIDDEN, flags=("--config",), letters="K"),),
    "wget": (_runs("--execute --use-askpass", "e"), Refused(reason=_HIDDEN, flags=("--config",))),
    "make": (_runs("--eval", "E", starts="SHELL= .SHELLFLAGS= MAKE= MAKEFLAGS= SHELL:= MAKE:="),),
    "ninja": (Refused(reason="it is a tool of ninja's own that does something else", letters="t"),),
    "cmake": (_runs(words="-E"),),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), (_COMPILER,)),
    "rustc": (_runs(words="-C", starts="-Clinker -Cllvm --codegen"),),
    "objdump": (Refused(reason=_HIDDEN, starts=("@",)),),
    "mypy": (_runs("--python-executable --install-types"),),
    "pyright": (_runs("--pythonpath"),),
    "pylint": (_runs("--init-hook"),),
    "pip": (_runs("--python --editor", words="config"),),
    "pip3": (_runs("--python --editor", words="config"),),
    "mvn": (_runs(starts="exec: org.codehaus.mojo:exec"),),
    "xmllint": (_runs("--shell", words="-shell"),),
    "openssl": (
        _runs("--engine --provider --provider-path", words="-engine -provider -provider-path engine s_client s_server"),
    ),
    "pandoc": (
        _runs("--filter --lua-filter --pdf-engine", "FL"),
        Refused(reason=_HIDDEN, flags=("--defaults",), letters="d"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subcommands:
    """`looking` is for everybody, `doing` from the operator on. Options before the subcommand are refused unless they
    stand in `alone`, or in `valued` with a value."""

    looking: frozenset[str]
    doing: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    refused: tuple[Refused, ...] = ()


def _subcommands(looking: str, doing: str = "", *refused: Refused, alone: str = "", valued: str = "") -> Subcommands:
    return Subcommands(
        looking=names(looking),
        doing=names(doing),
        alone=names(alone) | {"--version", "--help", "-h", "-V", "-v"},
        valued=names(valued),
        refused=refused,
    )


_SCRIPTS = (
    "install ci i add remove uninstall update up test t run run-script start build lint format pack init version prune"
)

SUBCOMMANDS: Mapping[str, Subcommands] = {
    "git": _subcommands(
        "status log diff show ls-files ls-tree blame annotate rev-parse rev-list describe shortlog cat-file grep "
        "merge-base name-rev for-each-ref show-ref check-ignore count-objects diff-tree whatchanged cherry",
        "add commit checkout switch restore branch tag merge rebase stash fetch pull push clone init mv rm reset clean "
        "cherry-pick revert apply am worktree remote reflog ls-remote format-patch archive bundle gc notes "
        "sparse-checkout",
        _runs("--exec --upload-pack --receive-pack --ext-diff --textconv --open-files-in-pager --exec-path"),
        Refused(reason="it would use settings of the caller's own", flags=("--config", "--template")),
        _writes("--output"),
        alone="--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects",
        valued="-C",
    ),
    "npm": _subcommands(
        "",
        f"{_SCRIPTS} ls list outdated view audit dedupe rebuild root prefix help",
        _runs(
            "--script-shell --shell --node-options --call --globalconfig --userconfig --viewer --browser --editor --git"
        ),
        alone="--silent -s",
        valued="--prefix",
    ),
    "pnpm": _subcommands(
        "", f"{_SCRIPTS} ls list outdated why audit", _runs("--script-shell --shell-mode", "c"), valued="-C --dir"
    ),
    "yarn": _subcommands("", f"{_SCRIPTS} list why info outdated audit", _runs("--script-shell"), valued="--cwd"),
    "go": _subcommands(
        "",
        "build test vet fmt list mod version env doc get install run work clean",
        _runs(words="-exec --exec -toolexec --toolexec -vettool --vettool -w"),
    ),
    "cargo": _subcommands(
        "",
        "build b check c test t run r fmt clippy doc d bench clean update tree metadata add remove new init fetch",
        Refused(reason="it would use settings of the caller's own", flags=("--config",)),
        alone="-q --quiet --offline",
    ),
    "poetry": _subcommands("", "install add remove update lock show build check version run"),
    "uv": _subcommands(
        "", "sync add remove lock pip venv build tree version run", _runs("--python"), alone="-q --offline"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """Runs a file. Before its name only these options: `alone`, `valued` with a value, `starts` with anything after."""

    alone: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    starts: tuple[str, ...] = ()
    modules: frozenset[str] = frozenset()


_PYTHON = Interpreter(
    alone=names("-u -B -O -OO -s -E -I -q -b -bb --version -V -VV --help -h"),
    valued=frozenset(("-W", "-X")),
    starts=("-W", "-X"),
    modules=names(
        "pytest unittest doctest mypy ruff black isort flake8 pylint pyright coverage tox pip venv build compileall "
        "py_compile json.tool tabnanny zipfile tarfile"
    ),
)
INTERPRETERS: Mapping[str, Interpreter] = {
    "python": _PYTHON,
    "python3": _PYTHON,
    "node": Interpreter(
        alone=names("--test --check -c --version -v --help -h --enable-source-maps --no-warnings"),
        starts=("--test-", "--max-old-space-size=", "--experimental-strip-types", "--experimental-test-"),
    ),
    "ruby": Interpreter(alone=names("-w -c -v --version --help -h")),
    "perl": Interpreter(alone=names("-w -c -v --version -t -T")),
}
ASKS_ABOUT_ITSELF = names("--version -V -VV -v --help -h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """Runs the command that follows its own options and its `own` operands; that command is judged instead of it."""

    after: tuple[str, ...] = ()
    alone: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    own: int = 0


WRAPPERS: Mapping[str, Wrapper] = {
    "timeout": Wrapper(
        alone=frozenset(("--preserve-status", "--foreground", "-v", "--verbose")),
        valued=frozenset(("-k", "--kill-after", "-s", "--signal")),
        own=1,
    ),
    "nice": Wrapper(valued=frozenset(("-n", "--adjustment"))),
    "npx": Wrapper(alone=names("--no-install --no -y --yes -q --quiet --offline")),
    "uv": Wrapper(after=("run",), alone=names("--no-sync --frozen --locked --offline -q")),
    "poetry": Wrapper(after=("run",)),
    "env": Wrapper(alone=frozenset(("-i", "--ignore-environment")), valued=frozenset(("-u", "--unset"))),
    "xargs": Wrapper(
        alone=names("-0 --null -r --no-run-if-empty -t --verbose -x --exit"),
        valued=names("-n --max-args -L --max-lines -P --max-procs -I -d --delimiter -s --max-chars"),
    ),
}
VARIABLES = names("""
    TZ LANG LANGUAGE CI DEBUG VERBOSE LOG_LEVEL NODE_ENV APP_ENV RAILS_ENV FLASK_APP FLASK_ENV DJANGO_SETTINGS_MODULE
    NO_COLOR FORCE_COLOR TERM COLUMNS LINES PYTHONPATH PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED
    RUST_BACKTRACE RUST_LOG GOOS GOARCH CGO_ENABLED HOST PORT TEST SOURCE_DATE_EPOCH
    """)
"""What `env` may set, besides LC_*: other variables can make programs run something else."""
