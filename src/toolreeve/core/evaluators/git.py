"""Options of git, by subcommand. Pure data.

A short option that takes a word in one subcommand takes none in another: only what is listed for the subcommand counts
as certain.
"""

FRONT = "-C -c --git-dir --work-tree --namespace --super-prefix --config-env"
"""Options in front of the subcommand that take a word."""

LOOSE = """
    -n -m -S -G -C -L -F -b -B -t -U -d -D --author --committer --grep --since --until --after --before --format
    --pretty --max-count --skip --message --date --file --branch --depth --track --max-parents --min-parents
    --diff-filter --not --glob --branches --tags --remotes --exclude --contains --merged --no-merged --sort
    --points-at --abbrev --trailer --squash --reuse-message --cleanup --source --encoding --stat
    --word-diff-regex --prefix -e --name --origin --unified --inter-hunk-context --find-renames --decorate-refs
    --reference --in-reply-to
"""
"""Options that may carry a value, and may take no word of their own."""

FLAGS = """
    -p -a -v -q -s -f -i -l -w -r -A -z -1 --oneline --stat --numstat --shortstat --name-only --name-status --all
    --graph --patch --no-patch --follow --reverse --no-merges --merges --first-parent --no-pager --no-ext-diff
    --cached --no-textconv --staged --no-color --quiet --verbose --short --porcelain --list --delete --force
    --verify --is-ancestor --no-edit --amend --allow-empty --allow-empty-message --no-verify --signoff --hard
    --soft --mixed --keep --abort --continue --show-toplevel --abbrev-ref --symbolic --exists --count --left-right
    --cherry-pick --no-ff --ff-only --rebase --prune --recursive --bare --mirror --single-branch --no-tags --tags
    --no-checkout --detach --orphan --ours --theirs --merge --patch-with-stat --raw --get --get-all --unset
    --no-index -line-number --line-number --ignore-case --heading --fixed-strings --word-regexp --files-with-matches
    --root --no-show-signature --end-of-options
"""

_SEARCHES = "-S -G --author --committer --grep --since --until --after --before --max-count -n --skip --date --encoding"

TAKING = {
    "": "-C",
    "log": _SEARCHES + " -L --diff-filter",
    "show": _SEARCHES,
    "diff": "-S -G --diff-filter",
    "grep": "-e",
    "blame": "-L",
    "commit": "-m -F -C --message --author --date --file --trailer --squash --reuse-message --cleanup",
    "tag": "-m -F --message --file --cleanup --sort --points-at",
    "merge": "-m -F --message --file --cleanup",
    "branch": "--sort --points-at",
    "checkout": "-b -B",
    "clone": "-b --branch --depth --origin --reference",
    "fetch": "--depth",
    "for-each-ref": "--sort --points-at --format",
}
"""Options that certainly take the next word, by subcommand; `""` is in front of it."""

ADDRESSES = "clone fetch pull push ls-remote remote archive fetch-pack send-pack"
"""Subcommands with operands that name a repository, and may name a program to reach it by: `ext::…`."""

REFUSED = """
    bisect submodule filter-branch difftool mergetool config daemon upload-pack receive-pack credential send-email
    p4 svn cvsimport web--browse instaweb hook for-each-repo help upload-archive remote-ext fast-import shell ext
    maintenance interpret-trailers am var
"""
"""Subcommands that evaluate their operands."""
