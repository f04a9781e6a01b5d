"""Roles of values: the effect of each value of a program."""

import re
from functools import lru_cache
from itertools import product

from toolreeve.core.effects import EffectKind, Reach
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, several, shown, text_of
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.paths import targeted_secret
from toolreeve.policy.shell.programs import hosts
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown
from toolreeve.policy.shell.programs.secret_search import expand_braces
from toolreeve.policy.shell.programs.spec import Program

_MOVES = re.compile(
    r"(?:abort|accept|backward-|beginning-of-line|cancel|clear-|delete-char|deselect|disable-search|enable-search|down|up|"
    r"end-of-line|exclude|first|last|forward-|half-page-|hide-|show-|ignore|jump|kill-|next-|prev-|page-|offset-|"
    r"replace-query|select|toggle|top|yank|accept-non-empty|track|unix-|best|clear-query|preview-(?:up|down|page|half|top|bottom))"
    r"[a-z-]*|(?:put|pos|change-(?:header|prompt|query|nth|multi|border-label|list-label|input-label|pointer|ghost))\([^()]*\)"
)

_FILES = ("read*",)
_FEW = 3
_STREAM = re.compile(r"-$|/dev/|/proc/")


def apply_role(role: str, word: Word, site: CommandSite) -> None:
    match role:
        case "text":
            return
        case "read":
            if word != "-":
                site.touch(EffectKind.READ, word)
        case "list":
            site.touch(EffectKind.READ, word, Reach.NAMES)
        case "deep":
            if word != "-":
                site.touch(EffectKind.READ, word, Reach.BELOW)
        case "write":
            site.touch(EffectKind.WRITE, word)
        case "output":
            if word != "-":
                site.touch(EffectKind.WRITE, word)
        case "tree":
            site.touch(EffectKind.WRITE, word, Reach.BELOW)
        case "delete":
            site.touch(EffectKind.DELETE, word)
        case "deltree":
            site.touch(EffectKind.DELETE, word, Reach.BELOW)
        case "move":
            _move(word, site)
        case "script":
            _script(word, site)
        case "url" | "host":
            site.contact_host(EffectKind.NET, word)
        case "upload":
            site.contact_host(EffectKind.SEND, word)
        case "server":
            hosts.server(word, site)
        case "connection":
            hosts.database(word, site)
        case "remote" | "publish":
            hosts.repository(word, site, EffectKind.NET if role == "remote" else EffectKind.SEND)
        case "image" | "release":
            hosts.image(word, site, EffectKind.NET if role == "image" else EffectKind.SEND)
        case "project":
            hosts.project(word, site)
        case "aim":
            _aim(word, site)
        case "revision":
            _revision(word, site)
        case "cloud":
            _cloud(word, site)
        case "replace":
            _replace(word, site)
        case "parents":
            _parents(word, site)
        case "database":
            _database(word, site)
        case "bind":
            _bind(word)
        case _:
            raise NotKnown(f"the role {role} of `{shown(word)}`")


def _move(word: Word, site: CommandSite) -> None:
    """A moved file can be read under its new name."""
    reach = Reach.EXACT if isinstance(word, Dynamic) else Reach.BELOW
    site.touch(EffectKind.READ, word, reach)
    site.touch(EffectKind.DELETE, word, reach)


def _script(word: Word, site: CommandSite) -> None:
    """A file whose content is executed: it must be a named file, not a stream."""
    if not isinstance(word, str) or _STREAM.match(word):
        raise NotKnown(f"takes what to do from `{shown(word)}`; name a file")
    site.touch(EffectKind.READ, word)


def _aim(word: Word, site: CommandSite) -> None:
    """A pattern that chooses which files of a tree are read."""
    text = text_of(word)
    text = text.partition("=")[2] if text.startswith("--") else text
    for pattern in expand_braces(text) if text[:1] != "!" else ():
        if name := targeted_secret(pattern):
            site.touch(EffectKind.READ, name.lstrip("/"))


def _revision(word: Word, site: CommandSite) -> None:
    """A git revision; `rev:path` and `:path` read a file of the repository."""
    if isinstance(word, str):
        revision, colon, path = word.partition(":")
        if colon and path and not revision.startswith(("/", "@{")):
            site.touch(EffectKind.READ, path.lstrip(":"))
        elif not colon and (".." not in word or word.startswith("../") or "/../" in word):
            site.touch(EffectKind.READ, word)


def _cloud(word: Word, site: CommandSite) -> None:
    """A value of a cloud command line, which may be read from a file by a prefix."""
    if not isinstance(word, str):
        return
    for prefix in ("fileb://", "file://", "@"):
        if word.startswith(prefix):
            site.touch(EffectKind.READ, word.removeprefix(prefix))
    if "=@" in word or "=file://" in word or "=fileb://" in word:
        raise NotKnown(f"`{word}` names a file inside a value")


def _replace(word: Word, site: CommandSite) -> None:
    """A file that is compressed or decompressed in place: it is replaced by one with a longer or shorter name."""
    site.touch(EffectKind.DELETE, word, Reach.EXACT if isinstance(word, Dynamic) else Reach.BELOW)
    if isinstance(word, str):
        site.touch(EffectKind.WRITE, word, Reach.BELOW)
        site.touch(EffectKind.WRITE, Glob(f"{word}.*"))
        site.touch(EffectKind.WRITE, word.rpartition(".")[0] or word)


def _parents(word: Word, site: CommandSite) -> None:
    """A directory and its parents, which may have to be created first."""
    site.touch(EffectKind.WRITE, word)
    if isinstance(word, str) and not word.startswith("/"):
        parts = word.rstrip("/").split("/")
        for count in range(1, len(parts)):
            site.touch(EffectKind.WRITE, "/".join(parts[:count]))


def _database(word: Word, site: CommandSite) -> None:
    """Opened for reading and writing, and created if missing."""
    if word != ":memory:":
        site.touch(EffectKind.READ, word)
        if isinstance(word, str):
            site.keep(word)


def _bind(word: Word) -> None:
    """Key bindings of fzf: moving and choosing are harmless, every other action may run something."""
    for binding in shown(word).split(","):
        for action in binding.partition(":")[2].split("+"):
            if not isinstance(word, str) or not _MOVES.fullmatch(action):
                raise NotKnown(f"the key binding `{binding}`")


def apply_arguments(program: Program, arguments: Arguments, site: CommandSite) -> None:
    """The effects of everything that was read: flags in order, then operands by position."""
    operands, absent = program.operands, program.absent
    for flag, value in arguments.flags:
        if value is not None and (role := program.flags.get(flag)):
            apply_role(role, value, site)
        if program.modes and (mode := program.modes.get(flag)):
            operands = tuple(mode["operands"].split()) if "operands" in mode else operands
            absent = tuple(mode["absent"].split()) if "absent" in mode else absent
    _operands(program, operands, absent, arguments.operands, site)


def _operands(
    program: Program, roles: tuple[str, ...], absent: tuple[str, ...], words: list[Word], site: CommandSite
) -> None:
    loose = [index for index, word in enumerate(words) if type(word) is not str and several(word)]
    assigned = _assign(roles, len(words))
    if assigned is not None and assigned.count("read") == len(words) and (not loose or roles == _FILES):
        site.read_all(words)
    elif not loose and assigned is not None:
        for role, word in zip(assigned, words, strict=True):
            if role != "text":
                apply_role(role, word, site)
    elif loose and (pairs := _any_of(roles, words, loose)):
        for role, word in pairs:
            apply_role(role, word, site)
    else:
        raise NotKnown(f"the operand `{shown(words[-1])}`" if words else "an operand is missing")
    if absent and len(words) - len(loose) <= sum(1 for role in roles if role[-1] != "*"):
        apply_role(absent[0], absent[1], site)


def _any_of(roles: tuple[str, ...], words: list[Word], loose: list[int]) -> dict[tuple[str, Word], None]:
    """Every role that each word may have, where those at `loose` may expand to none, one or several."""
    found: dict[tuple[str, Word], None] = {}
    alike = [(times,) * len(loose) for times in range(4)]
    for lengths in product(range(4), repeat=len(loose)) if len(loose) <= _FEW else alike:
        times = dict(zip(loose, lengths, strict=True))
        lengthened = [word for index, word in enumerate(words) for _ in range(times.get(index, 1))]
        assigned = _assign(roles, len(lengthened))
        if assigned is not None:
            found.update(dict.fromkeys(zip(assigned, lengthened, strict=True)))
    return found


@lru_cache(maxsize=512)
def _assign(roles: tuple[str, ...], count: int) -> tuple[str, ...] | None:
    """A role for each operand: `x` is one, `x?` one or none, `x*` any number, `x+` at least one."""
    fixed = sum(1 for role in roles if role[-1] not in "*?+")
    spare = count - fixed
    found: list[str] = []
    for role in roles:
        match role[-1]:
            case "?":
                found.extend([role[:-1]] * min(max(spare, 0), 1))
                spare -= min(max(spare, 0), 1)
            case "*" | "+":
                if role[-1] == "+" and spare < 1:
                    return None
                found.extend([role[:-1]] * max(spare, 0))
                spare = 0
            case _:
                found.append(role)
    return tuple(found) if len(found) == count else None
