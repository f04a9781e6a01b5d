"""Runners: programs that an option can make run something. Pure data.

An option that is not listed here may not carry a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolreeve.core.evaluators.names import words


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
        data=words(data),
        flags=words(flags),
        beginnings=tuple(beginnings.split()),
        operands=operands,
        anchored=anchored,
        refused=words(refused),
    )


_COMPILER = _runner(
    "-o -I -L -D -U -O -std -l --std",
    "-c -S -E -g -Wall -Wextra -Werror -O0 -O1 -O2 -O3 -Os -pedantic -fPIC -shared -static",
    beginnings="- @",
)

_LESS = _runner("-p -P", "-R -S -N -F -X -i -s", beginnings="- +")

_NETCAT = _runner("-w -p -s -i", "-z -v -u -l -n -k -4 -6 -N -q -zv -vz")

_IMAGES = _runner("-resize -quality -crop -rotate -size -format -geometry", anchored=True)

_CONTAINERS = _runner(
    "-e --env --name -n --namespace -l --label --filter -f --format -o --output --tag -t --tail --since --until -c",
    "-i -t -it -ti -d --rm -a --all -q --quiet -f --follow --interactive --tty -A --all-namespaces -w "
    "--watch --no-trunc",
    refused="plugin buildx",
)

_PACKAGES = _runner(
    "-m --message -v --version --registry --tag -r --requirement -i --index-url -t --target -run -count "
    "-timeout --prefix",
    "-g -D -U -y -q --save --save-dev --save-exact --global --upgrade --user --no-deps --json --quiet --yes --dev",
    refused="exec x explore dlx config run-script rebuild edit repl",
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
        "--newer --after-date --label --exclude-vcs-ignores --add-file --occurrence --one-top-level --prefix "
        "--level --suffix",
        "-x -c -t -v -z -j -J -a -p -k -h -O -r -u -A --list --extract --create --get --verbose --gzip --bzip2 "
        "--xz --zstd --auto-compress --keep-old-files --overwrite --to-stdout --no-same-owner --wildcards "
        "--exclude-vcs -xf -tf -cf",
    ),
    "git": _runner(
        "-n -m -S -G -C -L -F -b -B -t -U -d -D --author --committer --grep --since --until --after --before "
        "--format --pretty --max-count --skip --message --date --file --branch --depth --track --max-parents "
        "--min-parents --diff-filter --not --glob --branches --tags --remotes --exclude --contains --merged "
        "--no-merged --sort --points-at --abbrev --trailer --fixup --squash --reuse-message --cleanup --source "
        "--encoding --stat --word-diff-regex --prefix -e --name --origin --unified --inter-hunk-context "
        "--find-renames --decorate-refs --reference --in-reply-to",
        "-p -a -v -q -s -f -i -l -w -r -A -z -1 --oneline --stat --numstat --shortstat --name-only --name-status "
        "--all --graph --patch --no-patch --follow --reverse --no-merges --merges --first-parent --no-pager "
        "--no-ext-diff --cached --no-textconv --staged --no-color --quiet --verbose --short --porcelain --list "
        "--delete --force --verify --is-ancestor --no-edit --amend --allow-empty --allow-empty-message "
        "--no-verify --signoff --hard --soft --mixed --keep --abort --continue --show-toplevel --abbrev-ref "
        "--symbolic --exists --count --left-right --cherry-pick --no-ff --ff-only --rebase --prune --recursive "
        "--bare --mirror --single-branch --no-tags --tags --no-checkout --detach --orphan --ours --theirs --merge "
        "--patch-with-stat --raw --get --get-all --unset --no-index -line-number --line-number --ignore-case "
        "--heading --fixed-strings --word-regexp --files-with-matches --root --no-show-signature --end-of-options",
        refused="bisect submodule filter-branch difftool mergetool config daemon upload-pack receive-pack credential "
        "send-email "
        "p4 svn cvsimport web--browse instaweb hook for-each-repo help upload-archive remote-ext fast-import "
        "shell ext maintenance interpret-trailers am var",
    ),
    "rsync": _runner(
        "--exclude --include --max-size --min-size --bwlimit --timeout --chmod --chown --suffix --files-from "
        "--exclude-from",
        "-a -v -z -r -n -P -q -u -c -h -x --delete --archive --verbose --compress --recursive --dry-run "
        "--progress --stats",
    ),
    "zip": _runner("-x -i -P -t -tt", "-r -q -j -9 -0 -1 -u -m -y", anchored=False),
    "unzip": _runner("-d -x -P", "-l -o -n -q -j -p -v -t -Z"),
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
        "--etag-save --etag-compare --aws-sigv4 --get-query --expand-url --variable --mail-from --mail-rcpt "
        "--login-options --unix-socket --tls-max --ciphers --local-port",
        "-s -S -L -f -k -i -I -g -G -v -O -J -n -N -q -4 -6 -0 -# -sS -fsSL -sSL -sL -fsS --silent --show-error "
        "--location --fail --fail-with-body --insecure --include --head --globoff --get --verbose --remote-name "
        "--compressed --no-buffer --http1.1 --http2 --progress-bar --location-trusted --no-progress-meter "
        "--remote-header-name --ipv4 --ipv6 --path-as-is",
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
    **dict.fromkeys(["nc", "netcat", "ncat"], _NETCAT),
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
        "-in -out -key -pass -passin -passout -subj -days -connect -servername -K -iv -S -hmac -CAfile -md "
        "-inkey -keyfile",
        "-d -e -a -A -base64 -sha256 -sha1 -md5 -sha512 -hex -binary -r -noout -text -pbkdf2 -salt -new -x509 "
        "-nodes -aes-256-cbc",
    ),
    "gpg": _runner(
        "-r -u -o --recipient --local-user --output --homedir", "-e -d -s -a --verify --armor --batch --yes"
    ),
    "pytest": _runner("-k -m --maxfail -n --tb --junitxml", "-q -v -x -s -vv --lf --ff --co --collect-only"),
    "terraform": _runner("-target -var", "-auto-approve -json", operands=False),
    "gh": _runner(
        "-R -t -b -l -a -r -B -H -q -L -s -m -p -F -f -X --repo --title --body --label --assignee --reviewer "
        "--base --head --jq --limit --state --search --milestone --project --json --field --raw-field --method "
        "--header --body-file --notes",
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
        "-e -g -t -T -A -B -C -m -M -r -E -d -j --regexp --glob --iglob --type --type-not --max-count --max-depth "
        "--context --replace --after-context --before-context --max-columns --sort --encoding --colors --color "
        "--max-filesize",
        "-i -n -l -c -w -v -o -F -S -s -u -uu -uuu -q -L -N -H -I -0 -P -U -x -p -a --files --hidden --json "
        "--no-heading --line-number --count --fixed-strings --ignore-case --files-with-matches --smart-case "
        "--no-ignore --column --vimgrep --word-regexp --multiline --only-matching --heading --no-filename "
        "--with-filename --trim --stats --pcre2",
    ),
    "fd": _runner(
        "-e -t -d -E -g -S -o --extension --type --max-depth --exclude --glob", "-H -I -a -s -i -L -p -0 -F --hidden"
    ),
    "bat": _runner("-l -r --language --line-range --style --theme --paging", "-p -n -A --plain --number"),
    "hg": _runner("-m -u -r --rev --user --date --limit -l", refused="serve debugshell"),
    "svn": _runner("-m -r --message --revision --username", "-v -q --xml"),
    "aws": _runner(
        "--region --profile --output --query --bucket --key --prefix --name --filters --instance-ids --body "
        "--function-name --payload --log-group-name --filter-pattern --start-time --end-time --table-name "
        "--stack-name --cluster --max-items",
        refused="configure",
    ),
}
