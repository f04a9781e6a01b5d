"""Environment variables that a command may set without changing programs.

Many programs run, load or contact what a variable names. Exporting a variable is allowed by list; a shell variable of
the script itself is allowed unless its name is one that programs read.
"""

import re

_EXPORTABLE = re.compile(
    r"LC_[A-Z]+|LANG|LANGUAGE|TZ|COLUMNS|LINES|TERM|NO_COLOR|FORCE_COLOR|CLICOLOR(?:_FORCE)?|CI|DEBIAN_FRONTEND|"
    r"BLOCKSIZE|BLOCK_SIZE|QUOTING_STYLE|TIME_STYLE|GREP_COLORS?|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|"
    r"FOO|BAR|BAZ|VAR|DEBUG|VERBOSE|NODE_ENV|AWS_(?:DEFAULT_)?REGION|AWS_PROFILE|"
    r"LOG_LEVEL|APP_ENV|RAILS_ENV|FLASK_ENV|PYTHONHASHSEED|RUST_BACKTRACE|RUST_LOG|GOOS|GOARCH|CGO_ENABLED|HOST|PORT|TEST|"
    r"SOURCE_DATE_EPOCH"
)
ALL_VARIABLES = "prints every variable, which may hold secrets"
"""Why `env`, `printenv`, `set`, `declare -p` and the like are not known without a name."""
_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASS(WORD|WD|PHRASE)?$|API_?KEY|CREDENTIAL|PRIVATE|ACCESS_KEY", re.IGNORECASE)
_CODE = frozenset(("PYTHONPATH", "DJANGO_SETTINGS_MODULE", "FLASK_APP"))
_PLAIN_VALUE = re.compile(r"(?![./:~])[\w/+@=.:, -]*")
_LOOKED_FOR = re.compile(
    r"PATH|.*PATH|LD_.*|DYLD_.*|BASH.*|ENV|IFS|PS[0-9]|PROMPT.*|SHELL.*|HOME|CDPATH|GLOB.*|HIST.*|TMP(?:DIR)?|TEMP|OPT.*|"
    r".*PAGER|.*EDITOR|VISUAL|BROWSER|GIT_.*|SSH_.*|PYTHON.*|PERL.*|RUBY.*|NODE_.*|JAVA.*|JDK_.*|_JAVA.*|MAVEN.*|GRADLE.*|"
    r".*_PROXY|.*_proxy|LESS.*|MORE|MAN.*|GREP_OPTIONS|TAR_.*|TAPE|RSYNC_.*|DOCKER_.*|KUBE.*|HELM.*|TF_.*|AWS_.*|GOOGLE_.*|"
    r"AZURE_.*|XDG_.*|npm_.*|NPM_.*|PIP_.*|UV_.*|CARGO_.*|RUST.*|GO[A-Z]+|CC|CXX|CFLAGS|LDFLAGS|MAKE.*|MAIL.*|CURL_.*|"
    r"WGET.*|OPENSSL_.*|SSL_.*|GCONV.*|LOCPATH|NLSPATH|MALLOC_.*|GLIBC_.*|TERMINFO.*|TERMCAP|ZDOTDIR|FZF_.*|BAT_.*|RIPGREP_.*|"
    r"ACK.*|JQ_.*|PG.*|MYSQL_.*|AWKPATH|AWKLIBPATH|EXINIT|VIMINIT|INPUTRC|READLINE_.*|COMP_.*|FCEDIT|TMOUT|EXECIGNORE|"
    r"LINES|COLUMNS|FUNCNEST|POSIXLY_CORRECT|SHLVL|UID|EUID|PPID|SECONDS|RANDOM|DIRSTACK|GH_.*|GITHUB_.*|ANSIBLE_.*|PWD|OLDPWD|"
    r"_|LINENO|SRANDOM|EPOCH.*|GROUPS|FUNCNAME|PIPESTATUS"
)


def may_export(name: str, value: object) -> bool:
    """Whether the variable may be set to the value in a program's environment; a path could be loaded from."""
    if not isinstance(value, str) or _PLAIN_VALUE.fullmatch(value) is None:
        return False
    return _EXPORTABLE.fullmatch(name) is not None


def may_be_secret(name: str) -> bool:
    """Whether the variable's value is likely to be a secret."""
    return _SECRET_NAME.search(name) is not None


def names_code(name: str) -> bool:
    """Whether programs load code from where the variable points, which is the workspace."""
    return name in _CODE


def may_assign(name: str) -> bool:
    """Whether a plain assignment of the name stays within the script.

    It reaches a program only if the variable is exported already; names that programs read may be.
    """
    return name.isascii() and name.isidentifier() and _LOOKED_FOR.fullmatch(name) is None
