"""Git configuration files: parsed as git does, and classified key by key.

Pure. A key is inert only if it is listed here with a value that can make git run nothing; an unknown key, an include,
and a file that git would not read to its end are not.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

LARGEST = 256 << 10
_BOM = b"\xef\xbb\xbf"


class MalformedGitConfig(ValueError):
    """Git would refuse the file, or read it in a way that this parser does not follow."""


class Setting(NamedTuple):
    """`section` and `key` are lowercase. A key without `=` has the value None, which git takes for true."""

    section: str
    subsection: str | None
    key: str
    value: str | None

    @property
    def name(self) -> str:
        middle = "" if self.subsection is None else f"{self.subsection}."
        return f"{self.section}.{middle}{self.key}"


def parse(data: bytes) -> tuple[Setting, ...]:
    """Raises MalformedGitConfig."""
    if len(data) > LARGEST or b"\0" in data:
        raise MalformedGitConfig("too large, or holds NUL")
    text = data.removeprefix(_BOM).replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape")
    if "\r" in text:
        raise MalformedGitConfig("holds a carriage return")
    return tuple(_Parser(text).settings())


_SECTION = re.compile(r"\[([A-Za-z0-9.-]+)\]")
_SUBSECTION = re.compile(r'\[([A-Za-z0-9.-]+)[ \t\v\f]+"((?:[^"\\\n]|\\[^\n])*)"\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*")
_BLANK = re.compile(r"(?:[ \t\n\v\f]|[#;][^\n]*)*")
_PIECE = re.compile(r'[^\\"\n#; \t\v\f]+')
_SPACE = re.compile(r"[ \t\v\f]+")
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def settings(self) -> Iterator[Setting]:
        section: str | None = None
        subsection: str | None = None
        while self._skip_blank():
            if self._text[self._at] == "[":
                section, subsection = self._header()
                continue
            found = self._take(_KEY)
            if found is None or section is None:
                raise MalformedGitConfig("a line that is neither a section nor a key")
            yield Setting(section, subsection, found[1].lower(), self._value())

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _skip_blank(self) -> bool:
        self._take(_BLANK)
        return self._at < len(self._text)

    def _header(self) -> tuple[str, str | None]:
        if found := self._take(_SECTION):
            section, _, old_subsection = found[1].lower().partition(".")
            return section, old_subsection or None
        if found := self._take(_SUBSECTION):
            return found[1].lower(), re.sub(r"\\(.)", r"\1", found[2])
        raise MalformedGitConfig("a section that does not end")

    def _value(self) -> str | None:
        if self._ahead() in ("", "\n"):
            return None
        if self._ahead() != "=":
            raise MalformedGitConfig("a key without a value")
        self._at += 1
        self._take(_SPACE)
        return self._words()

    def _ahead(self) -> str:
        return self._text[self._at : self._at + 1]

    def _words(self) -> str:
        found: list[str] = []
        space = ""
        quoted = False
        while (character := self._ahead()) not in ("", "\n"):
            if not quoted and (blank := self._take(_SPACE)):
                space += blank[0]
                continue
            if not quoted and character in "#;":
                self._skip_comment()
                break
            found.append(space)
            space = ""
            if character == "\\":
                found.append(self._escape())
            elif character == '"':
                quoted = not quoted
                self._at += 1
            else:
                found.append(character)
                self._at += 1
                if piece := self._take(_PIECE):
                    found.append(piece[0])
        if quoted:
            raise MalformedGitConfig("a quotation that does not end")
        return "".join(found)

    def _skip_comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = end if end >= 0 else len(self._text)

    def _escape(self) -> str:
        following = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if following == "\n":
            return ""
        if following not in _ESCAPES:
            raise MalformedGitConfig("an unknown escape")
        return _ESCAPES[following]


Accepts = Callable[[str], bool]


def _anything(_: str) -> bool:
    return True


def is_plain_url(value: str) -> bool:
    """No remote helper (`ext::`), nothing that could be taken for an option."""
    return not value.startswith("-") and "::" not in value and "\n" not in value


def _is_false(value: str) -> bool:
    return value.lower() in ("false", "no", "off", "0", "")


def _is_update(value: str) -> bool:
    return value.lower() in ("checkout", "rebase", "merge", "none")


_INERT_NAMES = """
core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase core.precomposeunicode
core.symlinks core.autocrlf core.eol core.safecrlf core.quotepath core.abbrev core.compression core.loosecompression
core.bigfilethreshold core.sharedrepository core.protecthfs core.protectntfs core.longpaths core.untrackedcache
core.preloadindex core.checkstat core.trustctime core.sparsecheckout core.sparsecheckoutcone core.splitindex
core.commitgraph core.multipackindex core.whitespace core.warnambiguousrefs core.fscache core.hidedotfiles core.fsync
core.fsyncmethod core.commentchar core.usereplacerefs
extensions.objectformat extensions.refstorage extensions.compatobjectformat extensions.worktreeconfig extensions.noop
extensions.partialclone extensions.preciousobjects extensions.relativeworktrees
user.name user.email user.useconfigonly author.name author.email committer.name committer.email
init.defaultbranch pull.rebase pull.ff push.default push.autosetupremote push.followtags fetch.prune fetch.prunetags
fetch.parallel fetch.writecommitgraph merge.ff merge.conflictstyle merge.renames merge.log rebase.autostash
rebase.autosquash rebase.updaterefs diff.renames diff.algorithm diff.colormoved diff.mnemonicprefix diff.noprefix
diff.renamelimit log.date log.decorate log.abbrevcommit commit.verbose commit.gpgsign tag.gpgsign tag.sort status.short
status.branch status.showuntrackedfiles rerere.enabled rerere.autoupdate gc.auto gc.autodetach gc.pruneexpire
gc.reflogexpire gc.worktreepruneexpire index.version index.threads pack.threads pack.windowmemory feature.manyfiles
feature.experimental maintenance.auto maintenance.strategy http.postbuffer submodule.recurse submodule.active
submodule.fetchjobs help.autocorrect lfs.repositoryformatversion
receive.denycurrentbranch receive.denynonfastforwards receive.denydeletes
"""
_INERT = frozenset(_INERT_NAMES.split())
_INERT_SECTIONS = frozenset({"advice", "color", "column"})
_INERT_BELOW: dict[tuple[str, str], Accepts] = {
    **{
        ("remote", key): _anything
        for key in (
            "fetch push mirror tagopt prune prunetags skipdefaultupdate skipfetchall promisor partialclonefilter"
            " followremotehead"
        ).split()
    },
    ("remote", "url"): is_plain_url,
    **{("branch", key): _anything for key in "merge rebase description vscode-merge-base gh-merge-base".split()},
    ("branch", "remote"): is_plain_url,
    ("branch", "pushremote"): is_plain_url,
    **{("submodule", key): _anything for key in "active path branch ignore shallow fetchrecursesubmodules".split()},
    ("submodule", "url"): is_plain_url,
    ("submodule", "update"): _is_update,
}


def is_inert(setting: Setting, *, worktrees: Callable[[str], bool] = lambda _: False) -> bool:
    """`worktrees` decides whether a value of `core.worktree` may be the repository's directory."""
    value = setting.value or ""
    if setting.subsection is not None:
        accepts = _INERT_BELOW.get((setting.section, setting.key))
        is_name = setting.section != "remote" or is_plain_url(setting.subsection)
        return accepts is not None and accepts(value) and is_name
    match setting.section, setting.key:
        case "core", "worktree":
            return worktrees(value)
        case ("remote", "pushdefault") | ("checkout", "defaultremote"):
            return is_plain_url(value)
        case "core", "fsmonitor":
            return setting.value is not None and _is_false(value)
    return setting.section in _INERT_SECTIONS or f"{setting.section}.{setting.key}" in _INERT


def active(data: bytes, *, worktrees: Callable[[str], bool] = lambda _: False) -> tuple[Setting, ...]:
    """The settings of a file that are not inert. Raises MalformedGitConfig."""
    return tuple(setting for setting in parse(data) if not is_inert(setting, worktrees=worktrees))


def inert_copy(data: bytes, *, worktrees: Callable[[str], bool] = lambda _: False) -> bytes:
    """The file with its inert settings only. Raises MalformedGitConfig."""
    kept = (setting for setting in parse(data) if is_inert(setting, worktrees=worktrees))
    return "".join(map(_written, kept)).encode("utf-8", "surrogateescape")


_IDENTITY = frozenset({"user.name", "user.email"})


def identity(data: bytes) -> bytes:
    """The file with nothing but the committer's identity. Raises MalformedGitConfig."""
    kept = (setting for setting in parse(data) if setting.name in _IDENTITY)
    return "".join(map(_written, kept)).encode("utf-8", "surrogateescape")


def _written(setting: Setting) -> str:
    subsection = "" if setting.subsection is None else f' "{_quoted(setting.subsection)}"'
    header = f"[{setting.section}{subsection}]\n"
    if setting.value is None:
        return f"{header}\t{setting.key}\n"
    value = _quoted(setting.value).replace("\n", "\\n").replace("\t", "\\t").replace("\b", "\\b")
    return f'{header}\t{setting.key} = "{value}"\n'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


_DRIVERS = frozenset(
    "ada bash bibtex cpp csharp css dts elixir fortran fountain golang html java kotlin markdown matlab objc pascal"
    " perl php python ruby rust scheme tex ini".split()
)
_INERT_ATTRIBUTES: dict[str, frozenset[str]] = {
    "diff": _DRIVERS | {"lfs"},
    "merge": frozenset({"text", "binary", "union", "lfs"}),
    "filter": frozenset({"lfs"}),
}


def active_attributes(data: bytes) -> tuple[str, ...]:
    """The attributes that select a program: a filter, diff or merge driver that is not git's own.

    `lfs` is exempt: a user with Git LFS selected its program in their own configuration.
    """
    found: list[str] = []
    for word in re.split(r"[ \t\r\n]+", data.decode("utf-8", "surrogateescape")):
        name, _, value = word.partition("=")
        if name in _INERT_ATTRIBUTES and value and value not in _INERT_ATTRIBUTES[name]:
            found.append(word)
    return tuple(found)


def find_harm(kind: str | None, data: bytes) -> str | None:
    """Why git would run something because of a `.gitattributes` or `.gitmodules` file with this content, or None."""
    if kind == "attributes":
        chosen = active_attributes(data)
        return f"git runs the programs behind {', '.join(chosen)}" if chosen else None
    if kind != "modules":
        return None
    try:
        named = {setting.name for setting in active(data)}
    except MalformedGitConfig as problem:
        return f"git obeys it, and it cannot be read ({problem})"
    return f"git obeys it, and it sets {', '.join(sorted(named))}" if named else None


def read_pointer(data: bytes) -> str | None:
    """The path in a `.git` file, or in `commondir` and `gitdir`; None if it is more than one line."""
    text = data.decode("utf-8", "surrogateescape").removeprefix("gitdir:").strip()
    return None if not text or "\n" in text or "\0" in text else posixpath.normpath(text)
