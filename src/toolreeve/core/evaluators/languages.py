"""Interpreters and languages: programs whose argument is a program. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolreeve.core.evaluators.names import words

_OPEN_HANDLES = r"<>|<<>>|<ARGV>|<STDIN>\s*\||\bopen\b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """`code` are letters of options with a program behind them, `long` their long forms. `evaluates` finds, in a
    program written in the script, what would run or evaluate data. `valued` are options that take a plain word."""

    code: str
    long: frozenset[str] = frozenset()
    evaluates: str
    valued: frozenset[str] = frozenset()


def _interpreter(code: str, evaluates: str, *, long: str = "", valued: str = "") -> Interpreter:
    return Interpreter(
        code=code,
        long=words(long),
        evaluates=evaluates,
        valued=words(valued),
    )


_NODE = _interpreter(
    "epr",
    r"\beval\b|\bFunction\b|child_process|\bexec|\bspawn|\brequire\s*\(\s*[^'\"\s]|\bimport\s*\(|\bvm\b|setTimeout\s*\(\s*p"
    r"|process\.(?:binding|dlopen)|constructor|\bWorker\b|globalThis|\[['\"]",
    long="--eval --print --require --import --loader --experimental-loader",
)

_LUA = _interpreter("el", r"\bload|\bdofile\b|\bos\.|\bio\.popen|\brequire\b|_G|\bdebug\b")

_R = _interpreter(
    "e", r"\beval\b|\bparse\b|\bsystem|\bsource\b|\bpipe\b|do\.call|match\.fun|\bshell\b|\bget\b", long="--eval"
)

INTERPRETERS: Mapping[str, Interpreter] = {
    "python": _interpreter(
        "c",
        r"\beval\b|\bexec|\bcompile\b|\b__\w+__\b|\bsystem\b|popen|subprocess|\bpty\b|\bspawn|importlib|runpy|pickle|marshal"
        r"|shelve|\binput\s*\(.*\beval|getattr|globals|locals|\bcode\b|ctypes|yaml\.(?:unsafe_)?load\b|\.format\s*\(\*\*"
        r"|timeit|cProfile|\bpdb\b|commands|asyncio\.create_sub",
        valued="-W -X",
    ),
    "perl": _interpreter(
        "eEMmIx",
        r"\beval\b|\bsystem\b|\bexec\b|`|\bqx\b|\bdo\b\s*[^{\s]|\brequire\b|\bfork\b|\bsyscall\b|/[msixpodualngcr]*e[msixpodualngcre]*(?=[;})\s]|$)|->\s*\$"
        r"|&\s*\$|&\s*\{|\(\?\??\{|readpipe|\bglob\b|<\s*\$\w+\s*\*|" + _OPEN_HANDLES,
    ),
    "ruby": _interpreter(
        "erIC",
        r"\beval\b|_eval\b|\bsystem\b|\bexec\b|`|%x|\bspawn\b|popen|\bopen\b|\bIO\b|\bsend\b|Open3|\bload\b|\brequire\b|\bproc\b"
        r"|Marshal|YAML|Kernel|\bgets\b|\bARGF\b|constantize|\bmethod\b|\bfork\b|Process|readlines|\bPTY\b|ERB",
    ),
    "node": _NODE,
    "nodejs": _NODE,
    "bun": _NODE,
    "deno": _NODE,
    "php": _interpreter(
        "rBERFdz",
        r"\beval\b|\bassert\b|\bexec\b|system\b|passthru|shell_exec|popen|proc_open|`|\binclude|\brequire|call_user_func|\$\w+\s*\("
        r"|create_function|unserialize|preg_replace\s*\(.*e['\"]|array_map|array_filter|usort|\bmail\b|pcntl|\bFFI\b",
        long="--run --process-begin --process-code --process-end",
    ),
    "lua": _LUA,
    "luajit": _LUA,
    "R": _R,
    "Rscript": _R,
    "julia": _interpreter(
        "eEL", r"\beval\b|\bMeta\b|\brun\b|`|include|@eval|\bccall\b|\bCmd\b|pipeline", long="--eval --print"
    ),
}

MODULES = words(
    """
    IPython bdb bpython cProfile code doctest idlelib pdb profile ptpython pyclbr runpy sqlite3 timeit trace
    """
)
"""Modules behind `python -m` that evaluate an argument."""

AWKS = words(
    """
    awk gawk mawk nawk original-awk
    """
)

SEDS = words(
    """
    gsed sed ssed
    """
)

JQS = words(
    """
    gojq jaq jq yq
    """
)

SQL_DIALECTS: Mapping[str, str] = {
    "psql": "postgres",
    "sqlite3": "sqlite",
    "sqlite": "sqlite",
    "duckdb": "duckdb",
    "mysql": "mysql",
    "mariadb": "mysql",
}
