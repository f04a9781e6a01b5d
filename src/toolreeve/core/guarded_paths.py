"""Guarded paths: the one table of files that the host obeys unasked.

Pure; used by file tools, commands and the watch alike. A path is guarded if a program that a person uses anyway (git,
an editor that opens the folder, a shell that enters it, another agent, the CI of a push, a login, this runtime)
executes or obeys it without asking.
Not guarded are files that a person runs by name (Makefile, package.json, conftest.py, an environment in `.venv` that is
not ours): they are the project's code, which agents are there to change. So are files that describe a build or a check
to tools that a person or an editor starts for it (settings.gradle, pom.xml and .mvn, build.rs, flake.nix, Taskfile,
.yarnrc.yml, .pnpmfile.cjs, .bazelrc, eslint.config.js, .pylintrc, tsconfig.json): editors ask before they trust a
folder with those. Nor are files that a program obeys only after asking (.luarc.json, a .gdbinit of a project, .env), or
that name no program (.svn, .fossil-settings, .python-version, pyrightconfig.json, .clangd). Nor are instructions for
agents (CLAUDE.md, AGENTS.md, .cursorrules): they are prompts for a model that has its own permissions, and are treated
like documentation.

Names are compared casefolded. `workspace.sensitive_allow` names exceptions, for all users of this table alike.
"""

import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from toolreeve.core.secrets.paths import (
    find_home_secret,
    find_secret,
    is_sensitive,
    is_sensitive_folder,
    may_be_secret,
    may_be_sensitive,
)

Content = Literal["config", "attributes", "modules", "pointer", "hooks", "state", "lines", "link", "program"]
"""How to read the content, if more than the path decides whether it does harm. A `link` counts only as such, and a
`program` only if it is a file. `state` is changed by everyday work: it is assessed, and not protected from changes."""


class Guarded(NamedTuple):
    """The first `depth` names of a path are guarded as a whole; `by` completes "it is guarded, because …"."""

    depth: int
    by: str
    content: Content | None = None
    repository: int | None = None
    """It counts only if the directory of that many first names looks like a git repository."""

    @property
    def liftable(self) -> bool:
        """Whether `workspace.sensitive_allow` can name it."""
        return self.by not in (_OWN, _ENVIRONMENT)


_GIT = "git obeys it"
_OWN = "Toolreeve obeys it"
_ENVIRONMENT = "the runtime itself runs from it"
_CI = "CI obeys it"
_HOOKS = "a git hook obeys it"
_AT_A_REPOSITORYS_TOP = (_CI, _HOOKS)
"""They obey files at the top of a repository, not those that an installed package was published with."""

_ANYWHERE = {
    "VS Code obeys it": ".vscode .vscode-insiders .theia .vs .devcontainer .devcontainer.json",
    "JetBrains IDEs obey it": ".idea .fleet .run",
    "Zed obeys it": ".zed",
    "Helix obeys it": ".helix",
    "Nova obeys it": ".nova",
    "Eclipse obeys it": ".externaltoolbuilders",
    "Vim obeys it": (
        ".exrc .vimrc .gvimrc .nvimrc .nvim.lua .lvimrc _vimrc .vim .nvim .lazy.lua .neoconf.json .nlsp-settings"
        " .ycm_extra_conf.py"
    ),
    "Emacs obeys it": ".dir-locals.el .dir-locals-2.el .emacs.desktop",
    "an editor obeys it": ".lite_project .lite_project.lua .lapce .kateproject .kdev4 .tm_properties",
    "a language server obeys it": ".bsp buildserver.json .sourcekit-lsp .lsp hie.yaml .merlin gtags.conf .globalrc",
    "a console that is started there obeys it": (
        ".rprofile .renviron .rdata .irbrc _irbrc .pryrc .byebugrc .rdbgrc .ghci .ocamlinit .octaverc .iex.exs .erlang"
        " .psysh.php .pdbrc .perldb .nrepl.edn"
    ),
    "npm obeys it": ".npmrc",
    "Yarn obeys it": ".yarnrc",
    "lazygit obeys it": ".lazygit.yml",
    "Perforce obeys it": ".p4config",
    "Cursor obeys it": ".cursor",
    "Claude Code obeys it": ".claude",
    "Codex obeys it": ".codex",
    "Gemini CLI obeys it": ".gemini",
    "Windsurf obeys it": ".windsurf .codeium",
    "Continue obeys it": ".continue .continuerc.json",
    "Aider obeys it": ".aider.conf.yml .aider.model.settings.yml .aider.model.metadata.json",
    "Roo Code obeys it": ".roo .roomodes",
    "Cline obeys it": ".cline .clinerules",
    "Kilo Code obeys it": ".kilocode .kilocodemodes",
    "OpenCode obeys it": ".opencode opencode.json opencode.jsonc",
    "another agent obeys it": (
        ".kiro .amazonq .augment .junie .trae .goose .factory .qwen .crush .crush.json crush.json .amp .copilot"
        " .agents .agent .openhands .qodo .tabnine .void .codebuddy .warp .grok .pi gptme.toml .gptme.toml .rovodev"
        " .iflow .antigravity .cody .zencoder .mentat .devin .vibe .kimi"
    ),
    "MCP clients obey it": ".mcp.json mcp.json .mcp .mcphub",
    _CI: (
        ".github .gitlab .gitlab-ci.yml .gitlab-ci.yaml .circleci azure-pipelines.yml azure-pipelines.yaml"
        " .azure-pipelines .azuredevops jenkinsfile .jenkins .buildkite .travis.yml appveyor.yml .appveyor.yml"
        " .drone.yml .drone.yaml .drone.star .drone.jsonnet .woodpecker .woodpecker.yml .woodpecker.yaml .cirrus.yml"
        " .cirrus.star .teamcity bitbucket-pipelines.yml .semaphore .gitea .forgejo .build.yml .builds cloudbuild.yaml"
        " cloudbuild.yml buildspec.yml buildspec.yaml wercker.yml .tekton .harness .earthly .dagger zuul.yaml"
        " .zuul.yaml"
        " zuul.d .zuul.d .prow.yaml codefresh.yml codemagic.yaml bitrise.yml screwdriver.yaml .vela.yml .cirun.yml"
        " .onedev-buildspec.yml .space.kts .scrutinizer.yml .packit.yaml .copr"
    ),
    "a cloud workspace obeys it": (
        ".gitpod.yml .gitpod .ona .codesandbox .stackblitzrc .replit .idx devfile.yaml .devfile.yaml"
    ),
    _HOOKS: (
        ".pre-commit-config.yaml .pre-commit-config.yml .husky .huskyrc .huskyrc.json .huskyrc.js .githooks"
        " .lefthook lefthook.yml lefthook.yaml lefthook.toml lefthook.json .lefthook.yml .lefthook.yaml .lefthook.toml"
        " .lefthook.json lefthook-local.yml lefthook-local.yaml .lefthook-local.yml .overcommit.yml prek.toml"
        " hk.pkl captainhook.json .captainhook.json grumphp.yml .rusty-hook.toml .git-hooks"
    ),
    "the shell obeys it on entering the folder": (
        ".direnv .autoenv .autoenv.zsh .autoenv_leave.zsh .shadowenv.d mise.toml .mise.toml mise.local.toml"
        " .mise.local.toml .mise .rtx.toml .envrc .prototools"
    ),
    _OWN: "toolreeve.toml .toolreeve auto_approval_policies.yaml auto_approval_policies.yml",
}
_AT_THE_TOP = "policy.yaml policy.yml tools.yaml tools.yml governors.yaml governors.yml"
"""Toolreeve's own files, with names that others use too: they count only where the runtime looks for them."""

_ENDINGS = {
    ".code-workspace": "VS Code obeys it",
    ".sublime-project": "Sublime Text obeys it",
    ".sublime-workspace": "Sublime Text obeys it",
    ".ipr": "JetBrains IDEs obey it",
    ".iws": "JetBrains IDEs obey it",
}

_HG = "Mercurial obeys it"
_JJ = "Jujutsu obeys it"
_PLACES: Mapping[tuple[str, ...], tuple[str, Content | None]] = {
    (".hg", "hgrc"): (_HG, "lines"),
    (".hg", "hgrc-not-shared"): (_HG, "lines"),
    (".hg", "sharedpath"): (_HG, None),
    (".sl", "config"): ("Sapling obeys it", None),
    (".jj", "repo"): (_JJ, "program"),
    (".jj", "repo", "config.toml"): (_JJ, None),
    (".jj", "workspace-config.toml"): (_JJ, None),
    (".bzr", "branch", "branch.conf"): ("Bazaar obeys it", "lines"),
    (".bzr", "branch", "location"): ("Bazaar obeys it", None),
    (".pijul", "config"): ("Pijul obeys it", None),
    ("_darcs", "prefs", "defaults"): ("Darcs obeys it", None),
    (".cargo", "config"): ("Cargo and the editors that call it obey it", None),
    (".cargo", "config.toml"): ("Cargo and the editors that call it obey it", None),
    (".tool-versions",): ("the shims of asdf obey it", "state"),
}
"""Paths that count anywhere while their siblings are data. `.jj/repo` counts as a file that points elsewhere."""

_IN_HOME = {
    "the shell obeys it": (
        ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile .zshrc .zshenv"
        " .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc .xonshrc .hushlogin"
        " .config/fish .config/zsh .config/nushell .config/xonsh .config/bash .config/starship.toml .oh-my-zsh .zinit"
        " .antigen .bash_it .nvm .pyenv .rbenv .sdkman .asdf .asdfrc .direnvrc .config/direnv .config/mise .fzf.bash"
        " .config/powershell .config/elvish .elvish .selected_editor .local/share/mise .local/share/asdf"
        " .opam/opam-init"
    ),
    "the login obeys it": (
        ".config/autostart .config/systemd .config/environment.d .config/plasma-workspace .config/autostart-scripts"
        " .local/share/systemd .local/share/applications .local/share/dbus-1 .xinitrc .xprofile .xsession .xsessionrc"
        " .xserverrc .xresources .pam_environment .config/i3 .config/sway .config/hypr .config/openbox .config/awesome"
        " .config/bspwm .config/sxhkd .xbindkeysrc .config/mimeapps.list .mailcap .forward .procmailrc .config/crontab"
        " library/launchagents library/preferences .hammerspoon .config/upstart"
        " .config/waybar .config/polybar .config/rofi .config/dunst .config/qtile .config/niri .config/river"
        " .config/lxsession"
        " .config/xfce4 .xmonad .config/xmonad .fluxbox .icewm .config/gtk-3.0 .gtkrc-2.0 .local/share/gnome-shell"
        " .local/share/plasma .local/share/cinnamon .dmrc"
    ),
    "programs are found there": (
        "bin .local/bin .cargo/bin .cargo/env go/bin .bun/bin .deno/bin .npm-global .npm-packages .volta .rustup .krew"
        " .local/share/pnpm .pixi/bin .dotnet/tools .pub-cache/bin .nix-profile .nix-defexpr .config/nix"
        " .config/nixpkgs"
        " .config/guix .guix-profile .ghcup .local/share/flatpak perl5"
    ),
    "Python obeys it": ".local/lib .pythonrc .pythonstartup .pdbrc .ipython .jupyter .config/pip .pip"
    " .pydistutils.cfg .config/uv",
    _GIT: ".gitconfig .config/git .gitattributes .git-templates",
    "a tool for repositories obeys it": (
        ".gitk .tigrc .config/tig .config/lazygit .config/gitui .jjconfig.toml .config/jj .cvsrc .p4enviro"
        " .config/sapling"
        " .config/breezy .bazaar .config/pijul .darcs"
    ),
    "SSH obeys it": ".ssh .config/ssh .rhosts .shosts",
    "an editor obeys it": (
        ".vim .viminfo .config/nvim .local/share/nvim .emacs .emacs.d .config/emacs .config/doom .nanorc .config/nano"
        " .config/code .config/vscodium .config/cursor .vscode-server .vscode-oss .cursor-server .config/zed"
        " .config/helix .config/sublime-text .config/jetbrains .ideavimrc .atom .pulsar .config/micro .config/kak"
        " .textadept .config/lite-xl .spacemacs .spacemacs.d .doom.d .emacs.el .emacs.elc .gnus .gnus.el"
    ),
    "a terminal obeys it": (
        ".tmux.conf .config/tmux .tmux .screenrc .config/zellij .config/kitty .config/alacritty .config/wezterm"
        " .wezterm.lua .config/ghostty .lessfilter .lesskey .config/lesskey"
    ),
    "a program obeys it at its start": (
        ".gdbinit .config/gdb .lldbinit .psqlrc .sqliterc .irbrc .pryrc .rprofile .renviron .perldb .ackrc .wgetrc"
        " .curlrc .yarnrc .yarnrc.yml .config/yarn .gemrc .hgrc .config/hg .condarc .config/containers .config/opencode"
        " .npmrc .gnupg .aws .azure .kube .docker .dockercfg .password-store .terraformrc .terraform.d .boto .s3cfg"
        " .netrc _netrc .my.cnf .mozilla .thunderbird .librewolf .authinfo .fetchmailrc .msmtprc .mbsyncrc"
        " .offlineimaprc .config/gcloud .config/gh .config/glab-cli .config/hub .config/op .config/rclone .config/doctl"
        " .config/google-chrome .config/chromium .config/bravesoftware .config/microsoft-edge .config/vivaldi"
        " .config/opera .config/mozilla .m2 .mavenrc .gradle/gradle.properties .gradle/init.gradle .gradle/init.d"
        " .gradle/init.gradle.kts .nuget/nuget.config .bundle/config .subversion .composer .config/composer .gem"
        " .config/openvpn .config/wireguard .oci .fly .pgpass .pypirc .xauthority .vault-token"
        " .config/goose .claude.json .config/claude .aider.conf.yml .config/github-copilot .config/ripgrep"
        " .config/go .julia/config .lein .clojure .ammonite .ghc .config/ghc .cabal .stack .racketrc .guile .sbclrc"
        " .eclrc"
        " .clisprc.lisp .ccl-init.lisp .tclshrc .wishrc .gnuplot .radare2rc .valgrindrc .rpmmacros .makepkg.conf"
        " .config/pacman .quiltrc .devscripts .pbuilderrc .sbuildrc .gbp.conf .ansible.cfg .ansible .vagrant.d"
        " .config/helm .local/share/helm .config/k9s .muttrc .mutt .neomuttrc .config/mutt .config/neomutt .taskrc"
        " .config/mpv .config/ranger .config/lf .config/yazi .vifm .config/vifm .config/qutebrowser .weechat"
        " .config/weechat .irssi .newsboat .mylogin.cnf"
    ),
    _OWN: ".config/toolreeve .local/share/toolreeve .local/state/toolreeve",
}


def _spread(table: Mapping[str, str]) -> dict[str, str]:
    return {name: by for by, names in table.items() for name in names.split()}


_BY_NAME = _spread(_ANYWHERE)
_BY_HOME_PLACE = {tuple(place.split("/")): by for place, by in _spread(_IN_HOME).items()}
_TOP = frozenset(_AT_THE_TOP.split())
_LONGEST_HOME_PLACE = max(map(len, _BY_HOME_PLACE))
_LONGEST_PLACE = max(map(len, _PLACES))
_PLACE_ENDS = frozenset(place[-1] for place in _PLACES)
_HOME_NAMES = frozenset(place[-1] for place in _BY_HOME_PLACE)

_REPOSITORY: Mapping[str, Content | None] = {
    "config": "config",
    "config.worktree": "config",
    "commondir": "pointer",
    "gitdir": "pointer",
    "hooks": "hooks",
    "merge_rr": "state",
    "lazygit.yml": None,
}
_REPOSITORY_PAIRS: Mapping[tuple[str, str], Content] = {
    ("info", "attributes"): "attributes",
    ("rebase-merge", "git-rebase-todo"): "state",
    ("rebase-merge", "strategy"): "state",
    ("rebase-apply", "strategy"): "state",
    ("sequencer", "opts"): "state",
    ("sequencer", "todo"): "state",
}
"""The other files that git keeps there name no program: options of git's own strategies, names of commits, messages,
signing keys, the progress of `bisect`, and the location of more objects (`info/alternates`: data, of which only what a
commit refers to is ever shown)."""

_REMOTES = frozenset({"remotes", "branches"})
"""Directories with a file for each remote."""

REPOSITORY_NAMES = frozenset({*_REPOSITORY, *(first for first, _ in _REPOSITORY_PAIRS), *_REMOTES, "head", "objects"})
"""Names that, created or changed in a directory, make it a repository or change what git would run there."""

REPOSITORY_MAKERS = frozenset({"head", "objects", "commondir"})
"""Those of them that `is_repository` asks for: none of the others makes a directory a repository."""

REPOSITORY_CONTENT = frozenset({"objects", "lfs", "annex"})
REPOSITORY_BULK = REPOSITORY_CONTENT | {"refs", "logs"}
"""Parts of a repository that are large and name no program: paths inside them are not examined."""

_WRITTEN_BY_GIT = REPOSITORY_BULK | {"info", "rebase-merge", "rebase-apply", "worktrees", "modules", "sequencer"}


def find_link_in_repository(names: Sequence[str], depth: int, *, named_git: bool) -> Guarded | None:
    """What guards a link at the `names` below a repository: git writes through it. A repository not called `.git` may
    have other files around it."""
    if not names:
        return None
    is_written_by_git = named_git or len(names) == 1 or names[0].casefold() in _WRITTEN_BY_GIT
    return Guarded(depth, "git writes to its target", "link") if is_written_by_git else None


def find_guarded(parts: Sequence[str]) -> Guarded | None:
    """What guards a path, or None. `parts` are the names from an allowed root down; the outermost name counts."""
    folded = [part.casefold() for part in parts]
    for at, name in enumerate(folded):
        found = _find_below_git(folded, at + 1) if name == ".git" else _find_name(name, at) or _find_place(folded, at)
        if found is not None and not (found.by in _AT_A_REPOSITORYS_TOP and _is_package(folded[:at])):
            return found
    return None


def _is_package(folded: Sequence[str]) -> bool:
    return "node_modules" in folded or "site-packages" in folded


def _find_name(name: str, at: int) -> Guarded | None:
    if by := _BY_NAME.get(name):
        return Guarded(at + 1, by)
    if at == 0 and name in _TOP:
        return Guarded(1, _OWN)
    if name == ".gitattributes":
        return Guarded(at + 1, _GIT, "attributes")
    if name == ".gitmodules":
        return Guarded(at + 1, _GIT, "modules")
    if "." in name and (by := _ENDINGS.get(name[name.rindex(".") :])):
        return Guarded(at + 1, by)
    return None


def _find_place(folded: Sequence[str], at: int) -> Guarded | None:
    if folded[at] not in _PLACE_ENDS:
        return None
    for length in range(1, _LONGEST_PLACE + 1):
        place = tuple(folded[max(0, at + 1 - length) : at + 1])
        # A `.jj/repo` that is a directory must not end the search for what is in it.
        if place in _PLACES and (len(folded) == at + 1 or _PLACES[place][1] != "program"):
            return Guarded(at + 1, *_PLACES[place])
    return None


def _find_below_git(folded: Sequence[str], at: int) -> Guarded | None:
    """`at` is where the repository's own names begin."""
    below = folded[at:]
    if not below:
        return Guarded(at, _GIT, "pointer")
    if below[0] == "worktrees":
        return find_in_repository(folded, at + 2)
    if below[0] != "modules":
        return find_in_repository(folded, at)
    for start in range(at + 2, len(folded)):  # the names of submodules have slashes
        if found := find_in_repository(folded, start):
            return found._replace(repository=start)
    return None


def is_repository(names: Collection[str]) -> bool:
    """Whether git would take a directory that has these casefolded names for a repository."""
    return "head" in names and ("objects" in names or "commondir" in names)


def find_in_repository(folded: Sequence[str], at: int) -> Guarded | None:
    """As `find_guarded`, for casefolded names of which the first `at` lead to a repository, whatever it is called."""
    if len(folded) <= at:
        return None
    if folded[at] in _REPOSITORY:
        return Guarded(at + 1, _GIT, _REPOSITORY[folded[at]])
    if content := _REPOSITORY_PAIRS.get(tuple(folded[at : at + 2])):  # type: ignore[arg-type]
        return Guarded(at + 2, _GIT, content)
    if folded[at] in _REMOTES and len(folded) > at + 1:
        return Guarded(len(folded), _GIT, "state")
    return None


def find_guarded_in_home(parts: Sequence[str]) -> Guarded | None:
    """As `find_guarded`, for the names from a home directory down."""
    folded = tuple(part.casefold() for part in parts)
    for end in range(1, min(len(folded), _LONGEST_HOME_PLACE) + 1):
        if by := _BY_HOME_PLACE.get(folded[:end]):
            return Guarded(end, by)
    return None


_SPECIAL = re.compile(
    r"\.git(?:attributes|modules)?|.*(?:" + "|".join(map(re.escape, _ENDINGS)) + ")",
)


def may_matter(name: str, *, in_home: bool) -> bool:
    """Whether a path that ends in this casefolded name can be guarded, secret or sensitive outside a repository."""
    return (
        name in _BY_NAME
        or name in _TOP
        or name in _PLACE_ENDS
        or _SPECIAL.fullmatch(name) is not None
        or may_be_secret(name)
        or may_be_sensitive(name)
        or (in_home and name in _HOME_NAMES)
    )


def is_named(rest: str, allowed: Iterable[str]) -> bool:
    """Whether `workspace.sensitive_allow` names a path, given by its names below its root, or something around it."""
    return any(
        rest == name or rest.startswith(f"{name.rstrip('/')}/") or fnmatch.fnmatchcase(rest, name) for name in allowed
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardTable:
    """The table applied to the directories of one runtime. All paths are absolute and real.

    `roots` may be written to, `readable` only read. The innermost root of a path counts: a root inside a guarded
    directory lifts the guard. `homes` are home directories: their start-up files count if a root is or contains one.
    `environment` is where the runtime runs from, `governing` where its configuration comes from; neither applies to a
    root inside it. `secret` are hidden paths. `allowed` is `workspace.sensitive_allow`. `unread` tells which paths
    rules keep from being read unasked.
    """

    roots: tuple[str, ...]
    readable: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    governing: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    unread: Callable[[str], bool] | None = None
    _last_names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = (*self.environment, *self.governing, *self.secret)
        object.__setattr__(self, "_last_names", frozenset(place.rpartition("/")[2].casefold() for place in places))

    def guarded(self, path: str) -> Guarded | None:
        """What guards an absolute path, or None. `depth` counts the names from `/` on."""
        root = self.root_of(path)
        if root is None:
            return None
        for by, places in ((_ENVIRONMENT, self.environment), (_OWN, self.governing)):
            for place in places:
                if is_within(path, place) and not is_within(root, place):
                    return Guarded(_depth(place), by)
        found = self._find(path, root)
        if found is None or (found.liftable and self.is_allowed(path, root)):
            return None
        return found

    def _find(self, path: str, root: str) -> Guarded | None:
        if found := find_guarded(_names_below(path, root)):
            return _below(found, root)
        for home in self._homes_in(root, path):
            if found := find_guarded_in_home(_names_below(path, home)):
                return _below(found, home)
        return None

    def hidden(self, path: str) -> str | None:
        """Why an absolute path is kept from reading, or None."""
        if any(is_within(path, place) for place in self.secret):
            return "it belongs to the runtime"
        root = self.root_of(path)
        if root is None:
            return None
        why = find_secret(_names_below(path, root))
        for home in self._homes_in(root, path):
            why = why or find_home_secret(_names_below(path, home))
        return None if why is None or self.is_allowed(path, root) else why

    def sensitive(self, path: str, *, is_folder: bool) -> bool:
        """Whether an absolute path is kept from commands that nobody approved. A published package holds no secrets of
        the person's, and a folder of code may have the name of a secret file."""
        root = self.root_of(path)
        if root is not None and self.is_unread(path):
            return True
        if root is None or self.is_allowed(path, root):
            return False
        names = _names_below(path, root)
        if is_folder and not is_sensitive_folder(names[-1].casefold() if names else ""):
            return False
        return is_sensitive("/".join(names)) and not _is_package([name.casefold() for name in names])

    def is_unread(self, path: str) -> bool:
        return self.unread is not None and self.unread(path)

    def matters(self, name: str) -> bool:
        """Whether a path that ends in this casefolded name can be guarded or hidden outside a repository; quick."""
        return may_matter(name, in_home=bool(self.homes)) or name in self._last_names

    def root_of(self, path: str) -> str | None:
        """The innermost root that a path lies in."""
        around = [root for root in (*self.roots, *self.readable) if is_within(path, root)]
        return max(around, key=len, default=None)

    def _homes_in(self, root: str, path: str) -> Iterator[str]:
        return (home for home in self.homes if is_within(home, root) and is_within(path, home))

    def is_allowed(self, path: str, root: str) -> bool:
        return bool(self.allowed) and is_named("/".join(_names_below(path, root)), self.allowed)


def _names_below(path: str, place: str) -> list[str]:
    rest = path[len(place.rstrip("/")) + 1 :]
    return rest.split("/") if rest else []


def is_within(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip("/") + "/")


def _depth(path: str) -> int:
    return path.count("/") if path != "/" else 0


def _below(found: Guarded, root: str) -> Guarded:
    repository = None if found.repository is None else found.repository + _depth(root)
    return found._replace(depth=found.depth + _depth(root), repository=repository)


def outermost(path: str, depth: int) -> str:
    """The first `depth` names of an absolute path."""
    return "/".join(path.split("/")[: depth + 1]) or "/"
