"""Evaluators: which programs take words or input as code.

Pure data. Not a list of what may run: it says where a value would be more than data. For programs with a `Runner` an
option that is not listed may not carry a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass

SHELLS = frozenset({"bash", "sh", "dash", "ash", "ksh", "mksh", "zsh", "rbash"})
FOREIGN_SHELLS = frozenset({"fish", "csh", "tcsh", "pwsh", "powershell", "nu", "elvish", "xonsh", "rc"})
"""Shells whose grammar is not bash's: no value is passed to them at all."""

BUILTINS = frozenset(
    {"source", ".", "let", "unset", "read", "mapfile", "readarray", "bind", "complete", "compgen", "compopt", "enable"}
    | {"getopts", "coproc", "hash", "fc", "history", "shopt", "wait", "jobs", "set", "declare", "typeset", "local"}
    | {"export", "readonly", "ulimit"}
)
"""Builtins that take arguments for names of variables, for files of code, or for switches of the shell itself."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs the program named in its arguments, behind `operands` of its own."""

    operands: int = 0
    valued: frozenset[str] = frozenset()
    assigns: bool = False


def _wrapper(operands: int = 0, valued: str = "", *, assigns: bool = False) -> Wrapper:
    return Wrapper(operands, frozenset(valued.split()), assigns)


WRAPPERS: Mapping[str, Wrapper] = {
    "env": _wrapper(valued="-u -C --unset --chdir", assigns=True),
    "xargs": _wrapper(valued="-I -n -P -d -L -s -E -a --max-args --max-procs --delimiter --max-lines --arg-file"),
    "timeout": _wrapper(1, "-s -k --signal --kill-after"),
    "nice": _wrapper(valued="-n --adjustment"),
    "ionice": _wrapper(valued="-c -n -p --class --classdata"),
    "stdbuf": _wrapper(valued="-i -o -e --input --output --error"),
    "time": _wrapper(valued="-f -o --format --output"),
    "exec": _wrapper(valued="-a"),
    "sudo": _wrapper(valued="-u -g -h -p -C -r -t -T -U -D -R --user --group --chdir", assigns=True),
    "doas": _wrapper(valued="-u -C"),
    "runuser": _wrapper(valued="-u -g -G"),
    "gosu": _wrapper(1),
    "su-exec": _wrapper(1),
    "fakeroot": _wrapper(valued="-l -s -i -b"),
    "flock": _wrapper(1, "-w -E --timeout --conflict-exit-code"),
    "chroot": _wrapper(1),
    "taskset": _wrapper(1, "-c --cpu-list"),
    "chrt": _wrapper(1, "-p -T -P -D"),
    "numactl": _wrapper(valued="-N -m -C -i -p"),
    "unshare": _wrapper(valued="-S -G -R -w --setuid --setgid --root --wd"),
    "nsenter": _wrapper(valued="-t -S -G --target --setuid --setgid"),
    "setpriv": _wrapper(valued="--reuid --regid --groups --securebits --selinux-label"),
    "capsh": _wrapper(),
    "prlimit": _wrapper(valued="-p --pid"),
    "bwrap": _wrapper(valued="--chdir --uid --gid --hostname --dir --tmpfs --proc --dev --unsetenv"),
    "firejail": _wrapper(),
    "strace": _wrapper(valued="-e -p -s -P -u -E"),
    "ltrace": _wrapper(valued="-o -e -p -s -u"),
    "valgrind": _wrapper(),
    "faketime": _wrapper(1, "-f"),
    "rlwrap": _wrapper(valued="-f -H -p -s"),
    "cpulimit": _wrapper(valued="-l -p -e"),
    "systemd-run": _wrapper(valued="-p -u --unit --property --slice --uid --gid"),
    "systemd-inhibit": _wrapper(),
    **{
        name: _wrapper()
        for name in (
            ["command", "builtin", "nohup", "setsid", "chronic", "ts", "ifne", "errno", "unbuffer", "eatmydata"]
            + ["setarch", "linux32", "linux64", "i386", "x86_64", "proxychains", "proxychains4", "torsocks", "torify"]
            + ["dbus-run-session", "dbus-launch", "xvfb-run", "ssh-agent", "catchsegv", "busybox", "toybox", "ld.so"]
            + ["ld-linux-x86-64.so.2", "tini", "dumb-init", "caffeinate", "winpty", "wine", "qemu-x86_64", "nix-shell"]
            + ["ccache", "distcc", "sccache", "pkexec", "cgexec", "gtimeout", "gnice", "genv", "gstdbuf"]
            + ["npx", "bunx", "pnpx", "uvx", "daemonize", "start-stop-daemon", "entr", "hyperfine"]
        )
    },
}

JOINING = frozenset(
    {
        "ssh",
        "su",
        "watch",
        "parallel",
        "script",
        "at",
        "batch",
        "crontab",
        "screen",
        "tmux",
        "expect",
        "autossh",
        "mosh",
    }
    | {"rsh", "rlogin", "pdsh", "clush", "ansible", "socat", "ncat", "tclsh", "wish", "osascript", "m4", "gnuplot"}
    | {"gdb", "lldb", "dc", "sshpass", "eval", "trap", "alias", "nc", "netcat", "iex"}
    | {"erl", "elixir", "ghci", "ghc", "runghc", "ocaml", "sbcl", "clisp", "guile", "racket", "scheme", "gst", "octave"}
    | {"matlab", "maxima", "gp", "sage", "groovy", "scala", "kotlin", "jshell", "clojure", "bb", "swift", "crystal"}
    | {"nim", "janet", "raku", "jimsh", "emacs", "emacsclient", "nvim", "vi", "vim", "view", "ex", "sqlplus"}
    | {"mongo", "mongosh", "cqlsh", "clickhouse-client", "clickhouse", "influx", "cypher-shell", "isql"}
    | {"sqlcmd", "bq", "trino", "presto", "hive", "beeline", "ftp", "lftp", "sftp", "telnet", "mutt"}
    | {"procmail", "dpkg-reconfigure", "run-parts", "git-shell", "fzf", "sk", "dmenu", "rofi", "j2", "jinja2"}
    | {"gomplate", "consul-template", "tcc", "cling", "csi"}
)
"""Programs that take their arguments, or their input, for code or for commands of theirs: no value at all."""

_OPEN_HANDLES = r"<>|<<>>|<ARGV>|<STDIN>\s*\||\bopen\b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """`code` are letters of options with a program behind them, `long` their long forms. `evaluates` finds, in a
    program written in the script, what would run or evaluate data. `valued` are options that take a plain word."""

    code: str
    long: frozenset[str] = frozenset()
    evaluates: str
    valued: frozenset[str] = frozenset()
    takes_options: bool = False


def _interpreter(
    code: str, evaluates: str, *, long: str = "", valued: str = "", takes_options: bool = False
) -> Interpreter:
    return Interpreter(
        code=code,
        long=frozenset(long.split()),
        evaluates=evaluates,
        valued=frozenset(valued.split()),
        takes_options=takes_options,
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
        valued="-W -X --check-hash-based-pycs",
    ),
    "perl": _interpreter(
        "eEMmIx",
        r"\beval\b|\bsystem\b|\bexec\b|`|\bqx\b|\bdo\b\s*[^{\s]|\brequire\b|\bfork\b|\bsyscall\b|/e\b|/\w*ee?\w*\s*[;}]|->\s*\$"
        r"|&\s*\$|&\s*\{|\(\?\??\{|readpipe|\bglob\b|<\s*\$\w+\s*\*|" + _OPEN_HANDLES,
        takes_options=True,
    ),
    "ruby": _interpreter(
        "erIC",
        r"\beval\b|_eval\b|\bsystem\b|\bexec\b|`|%x|\bspawn\b|popen|\bopen\b|\bIO\b|\bsend\b|Open3|\bload\b|\brequire\b|\bproc\b"
        r"|Marshal|YAML|Kernel|\bgets\b|\bARGF\b|constantize|\bmethod\b|\bfork\b|Process|readlines|\bPTY\b|ERB",
        takes_options=True,
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

MODULES = frozenset(
    {"timeit", "pdb", "cProfile", "profile", "runpy", "code", "trace", "doctest", "pyclbr", "idlelib"}
    | {"IPython", "bdb", "sqlite3", "ptpython", "bpython"}
)
"""Modules behind `python -m` that evaluate an argument."""

AWKS = frozenset({"awk", "gawk", "mawk", "nawk", "original-awk"})
SEDS = frozenset({"sed", "gsed", "ssed"})
JQS = frozenset({"jq", "gojq", "jaq", "yq"})
SQL_DIALECTS: Mapping[str, str] = {
    "psql": "postgres",
    "sqlite3": "sqlite",
    "sqlite": "sqlite",
    "duckdb": "duckdb",
    "mysql": "mysql",
    "mariadb": "mysql",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """A program that an option can make run something. A value may be the value of an option in `data`, or an operand.

    `flags` are options that take no word, so that what follows them is an operand. `beginnings` are what an operand may
    not begin with; `operands` is whether a value may be one at all, `anchored` whether it needs fixed text before it.
    `refused` are subcommands that evaluate their operands.
    """

    data: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ("-",)
    operands: bool = True
    anchored: bool = False
    refused: frozenset[str] = frozenset()


def _runner(
    data: str = "",
    flags: str = "",
    *,
    beginnings: str = "-",
    operands: bool = True,
    anchored: bool = False,
    refused: str = "",
) -> Runner:
    return Runner(
        data=frozenset(data.split()),
        flags=frozenset(flags.split()),
        beginnings=tuple(beginnings.split()),
        operands=operands,
        anchored=anchored,
        refused=frozenset(refused.split()),
    )


_COMPILER = _runner(
    "-o -I -L -D -U -O -std -l --std",
    "-c -S -E -g -Wall -Wextra -Werror -O0 -O1 -O2 -O3 -Os -pedantic -fPIC -shared -static",
    beginnings="- @",
)
_LESS = _runner(beginnings="- +")
_IMAGES = _runner("-resize -quality -crop -rotate -size -format -geometry", anchored=True)
_CONTAINERS = _runner(
    "-e --env --name -n --namespace -l --label --filter -f --format -o --output --tag -t --tail --since --until -c",
    "-i -t -it -ti -d --rm -a --all -q --quiet -f --follow --interactive --tty -A --all-namespaces -w --watch --no-trunc",
    refused="plugin buildx",
)
_PACKAGES = _runner(
    "-m --message -v --version --registry --tag -r --requirement -i --index-url -t --target",
    "-g -D -U -y -q --save --save-dev --save-exact --global --upgrade --user --no-deps --json --quiet --yes --dev",
    refused="exec x explore dlx config run-script rebuild edit repl",
)

RUNNERS: Mapping[str, Runner] = {
    "find": _runner(
        "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -size -newer -anewer -cnewer -maxdepth "
        "-mindepth -mtime -mmin -atime -amin -ctime -cmin -user -group -uid -gid -perm -samefile -printf -lname -ilname "
        "-links -inum -newermt -newerat -newerct -used -regextype",
        "-not ! -o -a -or -and ( ) -print -print0 -delete -prune -empty -follow -depth -xdev -mount -daystart -L -H -P -quit "
        "-ls -executable -readable -writable -true -false ; + {}",
        beginnings="- ( ) ! ,",
    ),
    "tar": _runner(
        "-f -C --file --directory --exclude --strip-components --transform --xform --owner --group --mode --mtime --newer "
        "--after-date --label --exclude-vcs-ignores --add-file --occurrence --one-top-level --prefix --level --suffix",
        "-x -c -t -v -z -j -J -a -p -k -h -O -r -u -A --list --extract --create --get --verbose --gzip --bzip2 --xz --zstd "
        "--auto-compress --keep-old-files --overwrite --to-stdout --no-same-owner --wildcards --exclude-vcs -xf -tf -cf",
    ),
    "git": _runner(
        "-n -m -S -G -C -L -F -b -B -t -U -d -D --author --committer --grep --since --until --after --before --format --pretty "
        "--max-count --skip --message --date --file --branch --depth --track --max-parents --min-parents --diff-filter "
        "--not --glob --branches --tags --remotes --exclude --contains --merged --no-merged --sort --points-at --abbrev "
        "--trailer --fixup --squash --reuse-message --cleanup --source --encoding --stat --word-diff-regex --prefix "
        "-e --name --origin --unified --inter-hunk-context --find-renames --decorate-refs --reference --in-reply-to",
        "-p -a -v -q -s -f -i -l -w -r -A -z -1 --oneline --stat --numstat --shortstat --name-only --name-status --all "
        "--graph --patch --no-patch --follow --reverse --no-merges --merges --first-parent --no-pager --no-ext-diff --cached "
        "--no-textconv --staged --no-color --quiet --verbose --short --porcelain --list --delete --force --verify --is-ancestor "
        "--no-edit --amend --allow-empty --allow-empty-message --no-verify --signoff --hard --soft --mixed --keep --abort "
        "--continue --show-toplevel --abbrev-ref --symbolic --exists --count --left-right --cherry-pick --no-ff --ff-only "
        "--rebase --prune --recursive --bare --mirror --single-branch --no-tags --tags --no-checkout --detach --orphan "
        "--ours --theirs --merge --patch-with-stat --raw --get --get-all --unset --no-index -line-number --line-number "
        "--ignore-case --heading --fixed-strings --word-regexp --files-with-matches --root --no-show-signature --end-of-options",
        refused="bisect submodule filter-branch difftool mergetool config daemon upload-pack receive-pack credential send-email "
        "p4 svn cvsimport web--browse instaweb hook for-each-repo help upload-archive remote-ext fast-import shell "
        "ext maintenance interpret-trailers am var",
    ),
    "rsync": _runner(
        "--exclude --include --max-size --min-size --bwlimit --timeout --chmod --chown --suffix --files-from --exclude-from",
        "-a -v -z -r -n -P -q -u -c -h -x --delete --archive --verbose --compress --recursive --dry-run --progress --stats",
    ),
    "zip": _runner("-x -i -P -t -tt", "-r -q -j -9 -0 -1 -u -m -y", anchored=False),
    "unzip": _runner("-d -x -P", "-l -o -n -q -j -p -v -t -Z"),
    "7z": _runner(),
    "man": _runner("-s -S --sections", "-w -k -f --where", anchored=False, beginnings="- ."),
    "sort": _runner(
        "-k -t -o -S --key --field-separator --output --buffer-size --parallel --sort",
        "-n -r -u -h -V -f -b -c -g -M -R -s -z -m --unique --reverse --numeric-sort --human-numeric-sort --version-sort",
    ),
    "split": _runner(
        "-b -l -n -a -C -t --bytes --lines --number --suffix-length --additional-suffix --separator",
        "-d -x -e --verbose",
    ),
    "wget": _runner(
        "-O -o -a -i -t -T -U -P -A -R -D --header --user-agent --timeout --tries --post-data --body-data --method --referer "
        "--output-document --user --password --http-user --http-password --directory-prefix --limit-rate --wait --level -l",
        "-q -c -r -N -S --quiet --no-check-certificate --no-verbose -nv -nc --continue --spider --content-disposition "
        "--no-clobber --server-response --recursive --no-parent -np -4 -6",
    ),
    "curl": _runner(
        "-X -H -d -F -u -A -e -b -c -o -T -m -w -x -r -z -C -D -y -Y --request --header --data --data-raw --data-binary "
        "--data-urlencode --data-ascii --form --form-string --user --user-agent --referer --cookie --cookie-jar --output "
        "--upload-file --max-time --connect-timeout --write-out --proxy --proxy-user --range --url --url-query --json --retry "
        "--retry-delay --retry-max-time --max-redirs --max-filesize --limit-rate --resolve --connect-to --interface "
        "--oauth2-bearer --dump-header --time-cond --speed-limit --speed-time --proto --proto-default --proto-redir "
        "--cacert --cert --key --pass --noproxy --output-dir --etag-save --etag-compare --aws-sigv4 --get-query "
        "--expand-url --variable --mail-from --mail-rcpt --login-options --unix-socket --tls-max --ciphers --local-port",
        "-s -S -L -f -k -i -I -g -G -v -O -J -n -N -q -4 -6 -0 -# -sS -fsSL -sSL -sL -fsS --silent --show-error --location "
        "--fail --fail-with-body --insecure --include --head --globoff --get --verbose --remote-name --compressed --no-buffer "
        "--http1.1 --http2 --progress-bar --location-trusted --no-progress-meter --remote-header-name --ipv4 --ipv6 --path-as-is",
    ),
    "scp": _runner("-P -i -l -c", "-r -p -q -C -v", beginnings="-"),
    "tcpdump": _runner("-i -c -r -s", "-n -nn -v -q -A -X"),
    "make": _runner(operands=False),
    "gmake": _runner(operands=False),
    "ninja": _runner("-C -j -k -l"),
    "cmake": _runner(operands=False),
    **dict.fromkeys(["gcc", "cc", "g++", "c++", "clang", "clang++", "cpp", "ld", "as", "gfortran"], _COMPILER),
    **dict.fromkeys(["docker", "podman", "nerdctl", "kubectl", "oc", "helm", "crictl"], _CONTAINERS),
    **dict.fromkeys(["npm", "pnpm", "yarn", "pip", "pip3", "uv", "pipx", "gem", "cargo", "go", "composer"], _PACKAGES),
    **dict.fromkeys(["apt", "apt-get", "dpkg", "yum", "dnf", "apk", "brew", "rpm"], _PACKAGES),
    **dict.fromkeys(["less", "more", "most", "pg"], _LESS),
    **dict.fromkeys(
        ["convert", "magick", "identify", "mogrify", "composite", "montage", "import", "display", "animate", "gm"],
        _IMAGES,
    ),
    "ed": _runner("-p", "-s -r", beginnings="- !", anchored=False),
    "red": _runner("-p", "-s -r", beginnings="- !"),
    "cpio": _runner("-D -F -I -O", "-i -o -p -d -m -v -t -u"),
    "pandoc": _runner("-f -t -o -V -M --from --to --output --metadata --variable --title", "-s --standalone --toc"),
    "ffmpeg": _runner("-i -t -ss -to -r -b -s -vn -metadata", "-y -n -hide_banner -an -vn"),
    "nmap": _runner("-p -iL --top-ports", "-sV -sT -sn -Pn -F -v"),
    "openssl": _runner(
        "-in -out -key -pass -passin -passout -subj -days -connect -servername -K -iv -S -hmac -CAfile -md -inkey -keyfile",
        "-d -e -a -A -base64 -sha256 -sha1 -md5 -sha512 -hex -binary -r -noout -text -pbkdf2 -salt -new -x509 -nodes -aes-256-cbc",
    ),
    "gpg": _runner(
        "-r -u -o --recipient --local-user --output --homedir", "-e -d -s -a --verify --armor --batch --yes"
    ),
    "pytest": _runner("-k -m --maxfail -n --tb --junitxml", "-q -v -x -s -vv --lf --ff --co --collect-only"),
    "terraform": _runner("-target -var", "-auto-approve -json", operands=False),
    "gh": _runner(
        "-R -t -b -l -a -r -B -H -q -L -s -m -p -F -f -X --repo --title --body --label --assignee --reviewer --base --head "
        "--jq --limit --state --search --milestone --project --json --field --raw-field --method --header --body-file --notes",
        "-w --web --draft --fill --comments --patch --name-only --paginate --silent --include",
        refused="alias extension config codespace",
    ),
    "redis-cli": _runner("-h -p -n -a -u --user --pass", "--raw --no-auth-warning --json", refused="eval EVAL --eval"),
    **dict.fromkeys(["mail", "mailx"], _runner("-s -c -b -r -a -S", "-n -v", beginnings="- | +")),
    "dd": _runner(),
    "nft": _runner(operands=False),
    "logrotate": _runner(operands=False),
    "systemctl": _runner(
        "-n -p -t", "--user --no-pager --quiet", refused="edit set-environment link import-environment"
    ),
    "journalctl": _runner("-u -n --unit --since --until -g --grep -p -t -o", "--no-pager -f -r -x -q --user"),
    "tshark": _runner("-i -r -c -Y -T -e -f", "-n -V"),
    "xsltproc": _runner("--param --stringparam -o", operands=False),
    "sphinx-build": _runner(operands=False),
    "rustc": _COMPILER,
    "javac": _runner("-d -cp -classpath", beginnings="- @"),
    "java": _runner(operands=True, beginnings="- @"),
    "dotnet": _runner("-c -o --project"),
    "rg": _runner(
        "-e -g -t -T -A -B -C -m -M -r -E -d -j --regexp --glob --iglob --type --type-not --max-count --max-depth --context "
        "--replace --after-context --before-context --max-columns --sort --encoding --colors --color --max-filesize",
        "-i -n -l -c -w -v -o -F -S -s -u -uu -uuu -q -L -N -H -I -0 -P -U -x -p -a --files --hidden --json --no-heading "
        "--line-number --count --fixed-strings --ignore-case --files-with-matches --smart-case --no-ignore --column --vimgrep "
        "--word-regexp --multiline --only-matching --heading --no-filename --with-filename --trim --stats --pcre2",
    ),
    "fd": _runner(
        "-e -t -d -E -g -S -o --extension --type --max-depth --exclude --glob", "-H -I -a -s -i -L -p -0 -F --hidden"
    ),
    "bat": _runner("-l -r --language --line-range --style --theme --paging", "-p -n -A --plain --number"),
    "hg": _runner("-m -u -r --rev --user --date --limit -l", refused="serve debugshell"),
    "svn": _runner("-m -r --message --revision --username", "-v -q --xml"),
    "aws": _runner(
        "--region --profile --output --query --bucket --key --prefix --name --filters --instance-ids --body --function-name "
        "--payload --log-group-name --filter-pattern --start-time --end-time --table-name --stack-name --cluster --max-items",
        refused="configure",
    ),
}

OPTION_NAMES = (
    r"(?:.*-)?(?:exec|execute|eval|evaluate|command|cmd|run|runner|shell|rsh|ssh|script|hook|pager|editor|askpass|wrapper|filter"
    r"|program|prog|plugin|compress|compressor|decompressor|interpreter|preprocessor|pre|post|pipe|expr|expression|code|action"
    r"|load|require|module|preload|library|init|rcfile|browser|viewer|handler|on-\w+|launcher|tool|builder)"
    r"(?:-\w+)*"
)
"""Names of long options with which a program that is not known is taken to run something."""

CODE_LETTERS = frozenset({"-c", "-e", "-E", "-x", "-r"})
"""Short options behind which a program that is not known is taken to expect code."""

DATA = frozenset(
    [
        "echo",
        "printf",
        "cat",
        "tac",
        "head",
        "tail",
        "wc",
        "nl",
        "cut",
        "paste",
        "tr",
        "rev",
        "fold",
        "fmt",
        "pr",
        "expand",
    ]
    + [
        "unexpand",
        "column",
        "comm",
        "join",
        "uniq",
        "shuf",
        "tsort",
        "cmp",
        "diff",
        "diff3",
        "sdiff",
        "colordiff",
        "cksum",
    ]
    + [
        "md5sum",
        "sha1sum",
        "sha224sum",
        "sha256sum",
        "sha384sum",
        "sha512sum",
        "b2sum",
        "sum",
        "base64",
        "base32",
        "basenc",
    ]
    + [
        "xxd",
        "od",
        "hexdump",
        "hd",
        "strings",
        "file",
        "stat",
        "ls",
        "dir",
        "vdir",
        "tree",
        "du",
        "df",
        "pwd",
        "readlink",
    ]
    + [
        "realpath",
        "basename",
        "dirname",
        "touch",
        "mkdir",
        "rmdir",
        "rm",
        "cp",
        "mv",
        "ln",
        "link",
        "unlink",
        "install",
    ]
    + [
        "chmod",
        "chown",
        "chgrp",
        "mktemp",
        "mkfifo",
        "truncate",
        "shred",
        "sync",
        "grep",
        "egrep",
        "fgrep",
        "zgrep",
        "pgrep",
    ]
    + [
        "ps",
        "pidof",
        "kill",
        "top",
        "free",
        "uptime",
        "who",
        "w",
        "id",
        "whoami",
        "groups",
        "hostname",
        "uname",
        "date",
    ]
    + [
        "cal",
        "ncal",
        "sleep",
        "seq",
        "factor",
        "expr",
        "numfmt",
        "yes",
        "true",
        "false",
        ":",
        "test",
        "[",
        "tee",
        "sponge",
    ]
    + ["gzip", "gunzip", "zcat", "bzip2", "bunzip2", "bzcat", "xz", "unxz", "xzcat", "zstd", "unzstd", "zstdcat", "lz4"]
    + [
        "ping",
        "ping6",
        "traceroute",
        "tracepath",
        "dig",
        "nslookup",
        "host",
        "getent",
        "ip",
        "ifconfig",
        "ss",
        "netstat",
    ]
    + [
        "lsof",
        "iconv",
        "dos2unix",
        "unix2dos",
        "locale",
        "tput",
        "cd",
        "pushd",
        "popd",
        "exit",
        "return",
        "shift",
        "break",
    ]
    + [
        "continue",
        "umask",
        "type",
        "which",
        "whereis",
        "whatis",
        "apropos",
        "locate",
        "look",
        "aspell",
        "hunspell",
        "wdiff",
    ]
    + ["csplit", "tidy", "xmllint", "html2text", "pdftotext", "pdfinfo", "exiftool", "mediainfo", "ffprobe", "jo", "bc"]
    + [
        "logger",
        "notify-send",
        "cowsay",
        "figlet",
        "units",
        "whois",
        "arp",
        "route",
        "lsblk",
        "blkid",
        "mount",
        "lscpu",
    ]
    + ["nproc", "arch", "printenv", "tty", "stty", "clear", "reset", "sha3sum", "crc32", "uuidgen", "mcookie", "getopt"]
    + [
        "cloc",
        "wcalc",
        "dirs",
        "chattr",
        "lsattr",
        "getfacl",
        "setfacl",
        "getfattr",
        "setfattr",
        "ab",
        "hey",
        "wrk",
        "jp",
    ]
)
"""Programs for which every word is data, whatever it says."""

COPIERS = frozenset(["cp", "mv", "ln", "install", "link", "rsync", "scp"])
COMPILERS = frozenset(["gcc", "cc", "g++", "c++", "clang", "clang++", "ld", "as", "rustc", "go", "javac"])
WRITERS = (
    COPIERS
    | COMPILERS
    | {
        "tee",
        "dd",
        "sponge",
        "curl",
        "wget",
        "xxd",
        "openssl",
        "patch",
        "split",
        "iconv",
        "sort",
        "base64",
        "uudecode",
        "gzip",
    }
)
"""Programs that write to a file named in their arguments."""

VARIABLES = (
    "PATH IFS ENV HOME BASH_* LD_* DYLD_* PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS *PAGER *EDITOR VISUAL BROWSER "
    "GIT_* PERL* PYTHON* NODE_* npm_config_* NPM_CONFIG_* RUBY* GEM_* BUNDLE_* LUA_* PHPRC PHP_INI_SCAN_DIR R_* JULIA_* "
    "JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS *_OPTS CLASSPATH LESS LESSOPEN LESSCLOSE LESSKEY MANOPT MANPATH MORE "
    "TAR_OPTIONS TAPE ZIPOPT UNZIP XZ_OPT XZ_DEFAULTS GZIP MAKE MAKEFLAGS GNUMAKEFLAGS MAKEFILES MFLAGS CC CXX CPP LD "
    "*_RSH *_ASKPASS GLOBIGNORE CDPATH GCONV_PATH LOCPATH NLSPATH PSQLRC PGSERVICEFILE PGSYSCONFDIR SHELL FCEDIT EXECIGNORE "
    "CURL_HOME WGETRC SYSTEM_WGETRC INPUTRC SQLITE_HISTORY MYSQL_* KUBECONFIG AWS_CONFIG_FILE XDG_CONFIG_* XDG_DATA_* "
    "VIMINIT EXINIT GVIMINIT VIM VIMRUNTIME OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES ANSIBLE_* TF_CLI_* DOCKER_CONFIG "
    "RSYNC_* SSH_* GCC_EXEC_PREFIX COMPILER_PATH LIBRARY_PATH RUSTC* CARGO_* GOFLAGS CMAKE_* AWKPATH AWKLIBPATH AWK_* "
    "TCLLIBPATH TERMINFO* RIPGREP_CONFIG_PATH BAT_CONFIG_PATH JQ_* MALLOC_* GROFF_* TEXINPUTS MAGICK_* POSIXLY_CORRECT PWD "
    "histchars HISTFILE FIGNORE FUNCNEST OLDPWD"
).split()
"""Patterns of variables that make the shell or a common program run something."""


def plain_name(program: str) -> str:
    """`/usr/bin/python3.11` is python."""
    name = program.rsplit("/", 1)[-1]
    if name.startswith(("python", "pypy")) and "-config" not in name:
        return "python"
    for stem in ("perl", "ruby", "lua", "php", "gcc", "g++", "clang", "tclsh"):
        if name.startswith(stem) and name[len(stem) :].lstrip("-").replace(".", "").isdigit():
            return stem
    return name
