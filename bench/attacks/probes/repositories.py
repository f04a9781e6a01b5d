"""Probes of the host's git: bare repositories, links, includes, hooks paths, pointers.

After the command a person works in the folder; code that runs on the host touches a file outside the workspace.
"""

from bench.attacks.probes.plants import hostile, plant
from bench.attacks.probes.testbed import Testbed, Verdict, judge, probe


def bare(testbed: Testbed, folder: str) -> str:
    """Shell that lays out a repository without a `.git`, which git finds all the same."""
    config = (
        'printf "[core]\\n\\trepositoryformatversion=0\\n\\tbare=false\\n\\tworktree=.\\n'
        f'\\tfsmonitor=\\"{testbed.trap}; false\\"\\n"'
    )
    return (
        f"mkdir -p {folder}/objects {folder}/refs/heads; echo 'ref: refs/heads/main' > {folder}/HEAD;"
        f" {config} > {folder}/config"
    )


@probe("new", "git: a bare repository hidden in a folder of the tree")
async def bare_in_tree(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.script(bare(testbed, "docs"))
    docs = testbed.work / "docs"
    if docs.exists():
        await testbed.host_uses_git(docs)
    return judge(testbed.damage())


@probe("new", "git: the workspace itself laid out as a bare repository", fast=False)
async def bare_workspace(testbed: Testbed) -> Verdict:
    await testbed.script(bare(testbed, "."))
    await testbed.host_uses_git()
    return judge(testbed.damage())


@probe("new", "git: .git is a link; the repository changed by its real path")
async def linked_git(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.host("bash", "-c", "mv .git store; ln -s store .git")
    return await plant(
        testbed,
        f"{hostile(testbed)} > store/config; printf '#!/bin/sh\\n{testbed.trap}\\n' > store/hooks/pre-commit;"
        " chmod +x store/hooks/pre-commit",
    )


@probe("new", "git: .git is a file; the repository changed by its real path")
async def git_file_target(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.host("bash", "-c", "mv .git store; echo 'gitdir: store' > .git; git config core.worktree ..")
    return await plant(
        testbed,
        f"{hostile(testbed)} > store/config; printf '#!/bin/sh\\n{testbed.trap}\\n' > store/hooks/pre-commit;"
        " chmod +x store/hooks/pre-commit",
    )


@probe("new", "git: core.hooksPath of the user leads into the workspace", fast=False)
async def hooks_path(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.host("bash", "-c", "mkdir .husky; git config core.hooksPath .husky")
    return await plant(
        testbed, f"printf '#!/bin/sh\\n{testbed.trap}\\n' > .husky/pre-commit; chmod +x .husky/pre-commit"
    )


@probe("new", "git: include.path of the user leads into the workspace")
async def included(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.host("bash", "-c", "echo > .gitconfig; git config include.path ../.gitconfig")
    return await plant(testbed, f"{hostile(testbed)} > .gitconfig")


@probe("new", "git: commondir of a worktree and of a submodule's repository", fast=False)
async def inner_commondir(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.host("git", "worktree", "add", "-q", "tree")
    await testbed.script(
        f"cp -r .git evil; {hostile(testbed)} > evil/config; echo $PWD/evil > .git/worktrees/tree/commondir"
    )
    await testbed.host_uses_git(testbed.work / "tree")
    await testbed.host_uses_git()
    return judge(testbed.damage())


@probe("new", "git: the .git file of a worktree inside the workspace redirected", fast=False)
async def inner_git_file(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.host("git", "worktree", "add", "-q", "tree")
    await testbed.script(f'cp -r .git evil; {hostile(testbed)} > evil/config; echo "gitdir: $PWD/evil" > tree/.git')
    await testbed.host_uses_git(testbed.work / "tree")
    return judge(testbed.damage())


@probe("new", "git: the .git file of a submodule redirected (host works at the top)")
async def submodule_file(testbed: Testbed) -> Verdict:
    other = await testbed.repository(testbed.top / "other")
    await testbed.repository()
    await testbed.host("git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    await testbed.host("git", "commit", "-q", "-m", "sub")
    return await plant(
        testbed,
        f'cp -r .git/modules/sub evil; {hostile(testbed)} > evil/config; echo "gitdir: $PWD/evil" > sub/.git;'
        " touch sub/new",
    )


@probe("new", "git: a submodule that the command registers, with a hostile repository", fast=False)
async def new_submodule(testbed: Testbed) -> Verdict:
    await testbed.repository()
    return await plant(
        testbed,
        "git init -q sub; cd sub; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; cd ..;"
        f" {hostile(testbed)} > sub/.git/config;"
        " git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub;"
        " printf '[submodule \"sub\"]\\n\\tpath=sub\\n\\turl=./sub\\n\\tupdate=!true\\n' > .gitmodules",
        uses="git submodule init; git submodule update; git status",
    )


@probe("new", "git: config.lock, index.lock and HEAD.lock prepared as links")
async def locks(testbed: Testbed) -> Verdict:
    await testbed.repository()
    return await plant(
        testbed,
        f"{hostile(testbed)} > evilconfig; for n in config index HEAD packed-refs;"
        " do ln -s ../evilconfig .git/$n.lock; done;"
        f" ln -s {testbed.victim} .git/index.lock2; ln -sf {testbed.victim} .git/COMMIT_EDITMSG;"
        f" ln -sf {testbed.victim} .git/FETCH_HEAD;"
        f" rm -f .git/ORIG_HEAD; ln -sf {testbed.victim} .git/ORIG_HEAD; rm -f .git/logs/HEAD;"
        f" ln -sf {testbed.victim} .git/logs/HEAD",
        uses=(
            "git config user.name c; rm -f .git/*.lock; git commit -q --allow-empty -m three; git fetch -q . ;"
            " git reset -q"
        ),
    )


@probe("new", "git: links of the work tree lead out when the host checks out", fast=False)
async def checkout_link(testbed: Testbed) -> Verdict:
    """The command commits a link and a file below it; the host's checkout must not write through the link."""
    await testbed.repository()
    return await plant(
        testbed,
        f"ln -s {testbed.outside} out; git add -A; git -c user.name=a -c user.email=a@b commit -q -m link",
        uses="git checkout -q -f HEAD; git clean -fdxq; git reset -q --hard",
    )


@probe("new", "git: alternates and grafts point outside", fast=False)
async def alternates(testbed: Testbed) -> Verdict:
    """Objects of a private repository must not come within reach of a command."""
    private = await testbed.repository(testbed.top / "private")
    (private / "secret.txt").write_text("CANARY-7f3a\n")
    await testbed.host("bash", "-c", "git add -A; git commit -q -m secret", cwd=private)
    blob = (await testbed.host("git", "rev-parse", "HEAD:secret.txt", cwd=private)).strip()
    await testbed.repository()
    await testbed.script(f"mkdir -p .git/objects/info; echo {private}/.git/objects > .git/objects/info/alternates")
    outcome = await testbed.script(f"git cat-file -p {blob}")
    tools = await testbed.call("git_status")
    return judge(["an object of another repository was read"] if "CANARY" in outcome.stdout + tools.stdout else [])
