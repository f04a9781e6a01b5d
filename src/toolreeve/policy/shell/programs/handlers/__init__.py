"""Handlers of programs that need more than a specification.

Each handler reads the argument language of its programs; specifications name it under the key `judge`.
"""

from collections.abc import Callable, Mapping

from toolreeve.policy.shell.interpret.expansion import Word
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.programs.handlers import (
    awk,
    cloud,
    copy_targets,
    curl,
    filters,
    find,
    git,
    git_contents,
    interpreters,
    sed,
    shells,
    sql,
    tar,
    text,
    wrappers,
)
from toolreeve.policy.shell.programs.spec import Program

Handler = Callable[[Program, list[Word], CommandSite], Printed]

HANDLERS: Mapping[str, Handler] = {
    "anything": text.anything,
    "apply_patch": filters.apply_patch,
    "awk": awk.handle,
    "command": wrappers.command,
    "computes": filters.computes,
    "curl": curl.curl,
    "date": filters.date,
    "dashed_verb": filters.dashed_verb,
    "dd": filters.dd,
    "dig": curl.dig,
    "env": wrappers.env,
    "fd": text.fd,
    "find": find.handle,
    "flock": shells.flock,
    "fzf": text.fzf,
    "gh_api": curl.gh_api,
    "git": git.handle,
    "git_blame": git_contents.blame,
    "git_branch": git.branch,
    "git_clean": copy_targets.clean,
    "git_config": git.config,
    "git_contents": git_contents.contents,
    "git_grep": git_contents.grep,
    "git_remote": git.remote,
    "git_reset": git_contents.reset,
    "grep": text.grep,
    "elsewhere": shells.elsewhere,
    "grave": shells.grave,
    "here": text.here,
    "ip": filters.ip,
    "jq": text.jq,
    "kubectl_get": filters.kubectl_get,
    "mirror": copy_targets.mirror,
    "place": copy_targets.place,
    "printf": text.printf,
    "python": interpreters.python,
    "query": sql.query,
    "one_task": filters.one_task,
    "rm": filters.remove,
    "second_verb": filters.second_verb,
    "sed": sed.handle,
    "shell": shells.shell,
    "split": copy_targets.split,
    "tar": tar.handle,
    "unfed": filters.unfed,
    "unpack": copy_targets.unpack,
    "variables": text.variables,
    "verbs": cloud.verbs,
    "watch": shells.watch,
    "wget": curl.wget,
    "wrapper": wrappers.wrapper,
    "xargs": wrappers.xargs,
    "yq": text.yq,
}
