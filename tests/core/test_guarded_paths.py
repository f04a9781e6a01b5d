import pytest

from toolreeve.core.guarded_paths import GuardTable, find_guarded, find_guarded_in_home, outermost
from toolreeve.core.secrets.paths import find_home_secret, find_secret

OBEYED = """
.git .git/config .git/config.worktree .git/commondir .git/gitdir .git/hooks .git/hooks/pre-commit .git/info/attributes
.git/modules/sub/config .git/modules/libs/sub/hooks/post-checkout .git/modules/sub/commondir
.git/modules/s/config.worktree .git/worktrees/w/config.worktree .git/worktrees/w/commondir .git/worktrees/w/gitdir
.git/rebase-merge/git-rebase-todo .GIT/Config sub/.git/config a/b/.git/hooks/post-merge .gitattributes
sub/.gitattributes .gitmodules .vscode/tasks.json .VSCode/tasks.json app.code-workspace .idea/workspace.xml
.zed/tasks.json .cursor/mcp.json .claude/settings.json .codex/config.toml .gemini/settings.json .mcp.json
sub/.mcp.json .github/workflows/ci.yml .gitlab-ci.yml .circleci/config.yml azure-pipelines.yml Jenkinsfile
.buildkite/pipeline.yml .devcontainer/devcontainer.json .husky/pre-commit lefthook.yml .pre-commit-config.yaml
.windsurf/hooks.json .continue/config.json .aider.conf.yml .roo/mcp.json opencode.json .vs/tasks.vs.json .exrc
.nvim.lua .helix/languages.toml .dir-locals.el .direnv/x.rc mise.toml toolreeve.toml policy.yaml policy.yml tools.yaml
tools.yml governors.yaml auto_approval_policies.yaml .toolreeve/x
.git/rebase-merge/strategy .git/rebase-apply/strategy .git/sequencer/opts .git/sequencer/todo .git/MERGE_RR
.git/remotes/origin .git/branches/a/b .git/worktrees/w/rebase-merge/strategy .git/modules/s/sequencer/opts
.git/lazygit.yml .lazygit.yml .hg/hgrc sub/.hg/hgrc .hg/sharedpath .hg/hgrc-not-shared .sl/config .jj/repo
.jj/repo/config.toml .jj/workspace-config.toml .bzr/branch/branch.conf .pijul/config _darcs/prefs/defaults .p4config
.vim/coc-settings.json .nvim/init.lua .lazy.lua .neoconf.json .bsp/x.json buildServer.json .lsp/config.edn hie.yaml
.merlin .ghci .ocamlinit .octaverc .iex.exs .Rprofile .RData .irbrc .pryrc .lite_project.lua .kateproject
x.sublime-workspace x.ipr .emacs.desktop .cargo/config.toml sub/.cargo/config .npmrc .yarnrc .tool-versions
.prototools devfile.yaml .zuul.yaml gtags.conf node_modules/x/.vscode/tasks.json node_modules/x/.git/config
""".split()

ORDINARY = """
.git/HEAD .git/index .git/objects/ab/cdef .git/refs/heads/config .git/refs/heads/hooks/x .git/logs/refs/heads/config
.git/info/exclude .git/COMMIT_EDITMSG .git/packed-refs .gitignore .editorconfig CLAUDE.md AGENTS.md Makefile
package.json conftest.py src/config hooks/pre-commit config sub/policy.yaml docs/tools.yaml commondir
.venv/bin/activate Dockerfile src/vscode/tasks.json .github.md vscode
.git/MERGE_MSG .git/rebase-merge/done .git/rebase-merge/message .git/bisect/BISECT_LOG .git/BISECT_LOG .git/shallow
.git/objects/info/alternates .git/refs/remotes/origin/main .git/logs/refs/remotes/origin/main .hg/store/data
.hg/dirstate .jj/repo/store/x .bzr/repository/format .svn/wc.db .fossil-settings/ignore-glob .cargo/registry/x
.luarc.json
settings.gradle .mvn/extensions.xml .yarnrc.yml .pnpmfile.cjs flake.nix Taskfile.yml .python-version .nvmrc
pyrightconfig.json node_modules/x/.github/FUNDING.yml node_modules/x/.travis.yml
.venv2/site-packages/x/.github/workflows/a.yml
repo branches/x remotes/x strategy hgrc
""".split()


@pytest.mark.parametrize("path", OBEYED)
def test_what_the_host_obeys_unasked_is_guarded(path: str) -> None:
    assert find_guarded(path.split("/"))


@pytest.mark.parametrize("path", ORDINARY)
def test_what_a_project_is_made_of_is_not_guarded(path: str) -> None:
    assert find_guarded(path.split("/")) is None


def test_the_outermost_guarded_directory_is_guarded_as_one() -> None:
    found = GuardTable(roots=("/w",)).guarded("/w/a/.vscode/x/.git/config")

    assert found is not None
    assert outermost("/w/a/.vscode/x/.git/config", found.depth) == "/w/a/.vscode"


@pytest.mark.parametrize(
    "path",
    ".bashrc .profile .zshrc .config/fish/config.fish .config/autostart/x.desktop .config/systemd/user/x.service"
    " .gitconfig .config/git/config .local/bin/ls .local/lib/python3.11/site-packages/x.pth .vim/plugin/x.vim .BASHRC"
    " .config/toolreeve/toolreeve.toml .gitk .tigrc .config/lazygit/config.yml .selected_editor .config/go/env"
    " .julia/config/x .jjconfig.toml .rpmmacros .ansible/plugins/x .rustup/settings.toml .kube/config"
    " .docker/config.json".split(),
)
def test_start_up_files_are_guarded_where_the_workspace_is_or_contains_a_home(path: str) -> None:
    for root in ("/home/u", "/home", "/"):
        assert GuardTable(roots=(root,), homes=("/home/u",)).guarded(f"/home/u/{path}"), root
    assert find_guarded_in_home(path.split("/"))


def test_a_workspace_inside_a_home_is_not_a_home() -> None:
    guards = GuardTable(roots=("/home/u/.config/fish",), homes=("/home/u",))

    assert guards.guarded("/home/u/.config/fish/config.fish") is None


@pytest.mark.parametrize(
    "path",
    ".config/toolreeve/secrets.toml .config/gh/hosts.yml .ssh/id_ed25519 .aws/credentials .gnupg/x"
    " .mozilla/firefox/x/logins.json .config/google-chrome/Default/Cookies .local/share/keyrings/login.keyring"
    " project/deep/.env .bash_history .claude/.credentials.json .codex/auth.json .config/chromium".split(),
)
def test_secrets_of_a_home_are_hidden(path: str) -> None:
    assert GuardTable(roots=("/home/u",), homes=("/home/u",)).hidden(f"/home/u/{path}")
    assert find_secret(path.split("/")) or find_home_secret(path.split("/"))


def test_what_the_configuration_names_is_neither_guarded_nor_hidden() -> None:
    guards = GuardTable(roots=("/w",), homes=("/w",), allowed=(".github", "*.env", ".bashrc"))

    assert guards.guarded("/w/.github/workflows/ci.yml") is None
    assert guards.hidden("/w/prod.env") is None
    assert guards.guarded("/w/.bashrc") is None
    assert guards.guarded("/w/.vscode") is not None


def test_the_environment_that_the_runtime_runs_from_is_guarded() -> None:
    guards = GuardTable(roots=("/w",), environment=("/w/.venv", "/usr"))

    assert guards.guarded("/w/.venv/lib/python3.11/site-packages/x.pth")
    assert guards.guarded("/w/.venv2/x") is None


def test_a_workspace_inside_the_runtimes_prefix_stays_usable() -> None:
    assert GuardTable(roots=("/usr/src/app",), environment=("/usr",)).guarded("/usr/src/app/main.py") is None
