"""Runners: programs that an option can make run something. Pure data.

An option that is not listed here may not carry a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolreeve.core.evaluators.git import ADDRESSES, FLAGS, FRONT, LOOSE, REFUSED, TAKING
from toolreeve.core.evaluators.names import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """A program that an option can make run something. A value may be an operand, or the value of a listed option.

    Options in `data` take the next word in every subcommand, those in `taking` in that subcommand. Options in `loose`
    may take none, so that a word behind them may be an operand. `flags` take none. `front` are options before the
    subcommand that take a word.

    `beginnings` are what an operand may not begin with, `anywhere` what no word may begin with. Behind an option in
    `addressed`, and as an operand of a subcommand in `addresses`, a word may name a host or a program to reach it by.
    `operands` is whether a value may be an operand at all, `anchored` whether it needs fixed text before it. `refused`
    are subcommands that evaluate their operands.
    """

    data: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    taking: Mapping[str, frozenset[str]] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    front: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ("-",)
    anywhere: tuple[str, ...] = ()
    addressed: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    operands: bool = True
    anchored: bool = False
    refused: frozenset[str] = frozenset()

    def taken(self, command: str) -> frozenset[str]:
        """Options that certainly take the next word."""
        return self.data | self.taking.get(command, frozenset())


def _runner(
    data: str = "",
    flags: str = "",
    *,
    loose: str = "",
    taking: Mapping[str, str] | None = None,
    front: str = "",
    beginnings: str = "-",
    anywhere: str = "",
    addressed: str = "",
    addresses: str = "",
    operands: bool = True,
    anchored: bool = False,
    refused: str = "",
) -> Runner:
    return Runner(
        data=words(data),
        loose=words(loose),
        taking={command: words(options) for command, options in (taking or {}).items()},
        flags=words(flags),
        front=words(front),
        beginnings=tuple(beginnings.split()),
        anywhere=tuple(anywhere.split()),
        addressed=words(addressed),
        addresses=words(addresses),
        operands=operands,
        anchored=anchored,
        refused=words(refused),
    )


_COMPILER = _runner(
    "-o -I -L -D -U -l",
    "-c -S -E -g -O -Wall -Wextra -Werror -O0 -O1 -O2 -O3 -Os -pedantic -fPIC -shared -static",
    loose="-std --std",
    beginnings="- @",
    anywhere="@",
)

_BINUTILS = _runner(loose="-o -L -l -I", flags="-O -g -s -x -r -v -t -C -d -h -a", beginnings="- @", anywhere="@")

_LESS = _runner(loose="-p -P", flags="-R -S -N -F -X -i -s", beginnings="- +")

_NETCAT = _runner("-w -p -s -i", "-z -v -u -l -n -k -4 -6 -N -q -zv -vz")

_IMAGES = _runner(loose="-resize -quality -crop -rotate -size -format -geometry", anchored=True)

_CONTAINERS = _runner(
    "--name --label --filter --format --output --tag --tail --since --until --env",
    "-i -it -ti -d --rm -a --all -q --quiet --follow --interactive --tty -A --all-namespaces -w "
    "--watch --no-trunc --detach --init --privileged --read-only",
    loose="-e -n --namespace -l -f -o -t -c",
    refused="plugin buildx",
)

_PACKAGES = _runner(
    loose="-m --message -v --version --registry --tag -r --requirement -i --index-url -t --target --prefix",
    flags="-g -D -U -y -q --save --save-dev --save-exact --global --upgrade --user --no-deps --json --quiet --yes "
    "--dev",
    refused="exec x explore dlx config run-script rebuild edit repl",
)

_GO = _runner(
    "-run -count -timeout -bench -tags",
    "-v -x -a -race -json -short -m -u -cover -n",
    refused="env generate tool",
)

RUNNERS: Mapping[str, Runner] = {
    "find": _runner(
        "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -size -newer -anewer "
        "-cnewer -maxdepth -mindepth -mtime -mmin -atime -amin -ctime -cmin -user -group -uid -gid -perm "
        "-samefile -printf -lname -ilname -links -inum -newermt -newerat -newerct -used -regextype",
        "-not ! -o -a -or -and ( ) -print -print0 -delete -prune -empty -follow -depth -xdev -mount -daystart -L "
        "-H -P -quit -ls -executable -readable -writable -true -false ; + {}",
        beginnings="- ( ) ! ,",
    ),
    "tar": _runner(
        "-f -C --file --directory --exclude --strip-components --transform --xform --owner --group --mode --mtime "
        "--newer --after-date --label --add-file --level --suffix",
        "-x -c -t -v -z -j -J -a -p -k -h -O -r -u -A --list --extract --create --get --verbose --gzip --bzip2 "
        "--xz --zstd --auto-compress --keep-old-files --overwrite --to-stdout --no-same-owner --wildcards "
        "--exclude-vcs --exclude-vcs-ignores --force-local",
        loose="--occurrence --one-top-level",
        addressed="-f --file",
    ),
    "git": _runner(flags=FLAGS, loose=LOOSE, taking=TAKING, front=FRONT, addresses=ADDRESSES, refused=REFUSED),
    "rsync": _runner(
        "--exclude --include --max-size --min-size --bwlimit --timeout --chmod --chown --suffix --files-from "
        "--exclude-from",
        "-a -v -z -r -n -P -q -u -c -h -x --delete --archive --verbose --compress --recursive --dry-run "
        "--progress --stats",
        beginnings="- user@-",
    ),
    "zip": _runner("-P", "-r -q -j -9 -0 -1 -u -m -y", loose="-x -i -t -tt"),
    "unzip": _runner("-d -P", "-l -o -n -q -j -p -v -t -Z", loose="-x"),
    "7z": _runner(),
    "man": _runner("-s -S --sections", "-w -k -f --where", anchored=False, beginnings="- ."),
    "sort": _runner(
        "-k -t -o -S --key --field-separator --output --buffer-size --parallel --sort",
        "-n -r -u -h -V -f -b -c -g -M -R -s -z -m --unique --reverse --numeric-sort --human-numeric-sort "
        "--version-sort",
    ),
    "split": _runner(
        "-b -l -n -a -C -t --bytes --lines --number --suffix-length --additional-suffix --separator",
        "-d -x -e --verbose",
    ),
    "wget": _runner(
        "-O -o -a -i -t -T -U -P -A -R -D --header --user-agent --timeout --tries --post-data --body-data "
        "--method --referer --output-document --user --password --http-user --http-password --directory-prefix "
        "--limit-rate --wait --level -l",
        "-q -c -r -N -S --quiet --no-check-certificate --no-verbose -nv -nc --continue --spider "
        "--content-disposition --no-clobber --server-response --recursive --no-parent -np -4 -6",
    ),
    "curl": _runner(
        "-X -H -d -F -u -A -e -b -c -o -T -m -w -x -r -z -C -D -y -Y --request --header --data --data-raw "
        "--data-binary --data-urlencode --data-ascii --form --form-string --user --user-agent --referer --cookie "
        "--cookie-jar --output --upload-file --max-time --connect-timeout --write-out --proxy --proxy-user "
        "--range --url --url-query --json --retry --retry-delay --retry-max-time --max-redirs --max-filesize "
        "--limit-rate --resolve --connect-to --interface --oauth2-bearer --dump-header --time-cond --speed-limit "
        "--speed-time --proto --proto-default --proto-redir --cacert --cert --key --pass --noproxy --output-dir "
        "--etag-save --etag-compare --aws-sigv4 --variable --mail-from --mail-rcpt "
        "--login-options --unix-socket --tls-max --ciphers --local-port",
        "-s -S -L -f -k -i -I -g -G -v -O -J -n -N -q -4 -6 -0 -# -sS -fsSL -sSL -sL -fsS --silent --show-error "
        "--location --fail --fail-with-body --insecure --include --head --globoff --get --verbose --remote-name "
        "--compressed --no-buffer --http1.1 --http2 --progress-bar --location-trusted --no-progress-meter "
        "--remote-header-name --ipv4 --ipv6 --path-as-is",
    ),
    "scp": _runner("-P -i -l -c", "-r -p -q -C -v", beginnings="- user@-"),
    "tcpdump": _runner("-i -c -r -s", "-n -nn -v -q -A -X"),
    "make": _runner(operands=False),
    "gmake": _runner(operands=False),
    "ninja": _runner("-j -k -l"),
    "cmake": _runner(operands=False),
    **dict.fromkeys(["gcc", "cc", "g++", "c++", "clang", "clang++", "cpp", "gfortran"], _COMPILER),
    **dict.fromkeys(
        ["ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "rustc", "size", "strip"], _BINUTILS
    ),
    **dict.fromkeys(["docker", "podman", "nerdctl", "kubectl", "oc", "helm", "crictl"], _CONTAINERS),
    **dict.fromkeys(["npm", "pnpm", "yarn", "pip", "pip3", "uv", "pipx", "gem", "cargo", "composer"], _PACKAGES),
    **dict.fromkeys(["apt", "apt-get", "dpkg", "yum", "dnf", "apk", "brew", "rpm"], _PACKAGES),
    **dict.fromkeys(["nc", "netcat", "ncat"], _NETCAT),
    **dict.fromkeys(["less", "more", "most", "pg"], _LESS),
    **dict.fromkeys(
        ["convert", "magick", "identify", "mogrify", "composite", "montage", "import", "display", "animate", "gm"],
        _IMAGES,
    ),
    "ed": _runner("-p", "-s -r", beginnings="- !", anchored=False),
    "red": _runner("-p", "-s -r", beginnings="- !"),
    "cpio": _runner("-D -F -I -O", "-i -o -p -d -m -v -t -u --force-local", addressed="-F -I -O"),
    "pandoc": _runner("-o -V -M --output --metadata --variable", "-s --standalone --toc"),
    "ffmpeg": _runner("-i -t -ss -to -r -b -s -metadata", "-y -n -hide_banner -an -vn"),
    "nmap": _runner("-p -iL --top-ports", "-sV -sT -sn -Pn -F -v"),
    "openssl": _runner(
        "-in -out -key -pass -passin -passout -subj -days -connect -servername -K -iv -S -hmac -CAfile -md "
        "-inkey -keyfile",
        "-d -e -a -A -base64 -sha256 -sha1 -md5 -sha512 -hex -binary -r -noout -text -pbkdf2 -salt -new -x509 "
        "-nodes -aes-256-cbc",
    ),
    "gpg": _runner("-r -u -o --recipient --local-user --output", "-e -d -s -a --verify --armor --batch --yes"),
    "pytest": _runner(
        loose="-k -m --maxfail -n --tb --junitxml", flags="-q -v -x -s -vv --lf --ff --co --collect-only"
    ),
    "terraform": _runner(loose="-target -var", flags="-auto-approve -json", operands=False),
    "gh": _runner(
        "--repo --title --body --label --assignee --reviewer --base --head --jq "
        "--limit --state --search --milestone --project --json --field --raw-field --method "
        "--header --body-file --notes",
        "-w --web --draft --fill --comments --patch --name-only --paginate --silent --include",
        loose="-R -t -b -l -a -r -B -H -q -L -s -m -p -F -f -X",
        taking={"pr": "-t -b", "issue": "-t -b"},
        refused="alias extension config codespace",
    ),
    "redis-cli": _runner("-h -p -n -a -u --user --pass", "--raw --no-auth-warning --json", refused="eval EVAL --eval"),
    **dict.fromkeys(["mail", "mailx"], _runner("-s", "-n -v", loose="-c -b -r -a", beginnings="- | +")),
    "cloc": _runner(flags="--quiet --json --csv --yaml --by-file", loose="--include-lang --exclude-dir --exclude-lang"),
    "cowsay": _runner("-e -T -W", "-b -d -g -n -p -s -t -w -y"),
    "dd": _runner(),
    "diff3": _runner("-L --label", "-a -e -E -x -X -3 -i -m -A -T --text --merge --show-all"),
    "exiftool": _runner(flags="-j -json -s -S -G -n -a -u -g -r -q -b", beginnings="- @"),
    "install": _runner("-m -o -g -t -S --mode --owner --group --target-directory --suffix", "-d -D -v -p -s -C -b"),
    "ip": _runner(flags="-4 -6 -j -o -s -d -br -brief -json", refused="netns vrf"),
    "mount": _runner(operands=False),
    "sdiff": _runner("-o -w -I --output --width", "-s -l -i -W -b -B -E -Z -a -t -d -H"),
    "wrk": _runner("-c -d -t -H --connections --duration --threads --header --timeout", "--latency"),
    "nft": _runner(operands=False),
    "logrotate": _runner(operands=False),
    "systemctl": _runner(
        "-n -p -t", "--user --no-pager --quiet", refused="edit set-environment link import-environment"
    ),
    "journalctl": _runner("-u -n --unit --since --until -g --grep -p -t -o", "--no-pager -f -r -x -q --user"),
    "tshark": _runner("-i -r -c -Y -T -e -f", "-n -V"),
    "xsltproc": _runner("--param --stringparam -o", operands=False),
    "sphinx-build": _runner(operands=False),
    "go": _GO,
    "javac": _runner("-d -cp -classpath", beginnings="- @", anywhere="@"),
    "java": _runner(operands=True, beginnings="- @"),
    "dotnet": _runner(loose="-c -o"),
    "rg": _runner(
        "-e -g -t -T -A -B -C -m -M -r -E -d -j --regexp --glob --iglob --type --type-not --max-count --max-depth "
        "--context --replace --after-context --before-context --max-columns --sort --encoding --colors --color "
        "--max-filesize",
        "-i -n -l -c -w -v -o -F -S -s -u -uu -uuu -q -L -N -H -I -0 -P -U -x -p -a --files --hidden --json "
        "--no-heading --line-number --count --fixed-strings --ignore-case --files-with-matches --smart-case "
        "--no-ignore --column --vimgrep --word-regexp --multiline --only-matching --heading --no-filename "
        "--with-filename --trim --stats --pcre2",
    ),
    "fd": _runner(
        "-e -t -d -E -S -o --extension --type --max-depth --exclude", "-g --glob -H -I -a -s -i -L -p -0 -F --hidden"
    ),
    "bat": _runner("-l -r --language --line-range --style --theme --paging", "-p -n -A --plain --number"),
    "hg": _runner(
        loose="-m -u -r --message --rev --user --date --limit -l",
        flags="-v -q -p -G -b -a -n -c",
        beginnings="- ssh://- user@-",
        refused="serve debugshell",
    ),
    "svn": _runner("-m -r --message --revision --username", "-v -q --xml"),
    "aws": _runner(
        loose="--region --profile --output --query --bucket --key --prefix --name --filters --instance-ids --body "
        "--function-name --payload --log-group-name --filter-pattern --start-time --end-time --table-name "
        "--stack-name --cluster --max-items",
        refused="configure",
    ),
}
