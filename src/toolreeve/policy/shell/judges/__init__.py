"""Which programs need more than a table? Each judge reads one program's own language of arguments."""

from collections.abc import Callable, Mapping

from toolreeve.policy.shell.judges import (
    awk,
    cloud,
    contents,
    downloads,
    filters,
    find,
    git,
    interpreters,
    placing,
    sed,
    shells,
    sql,
    tar,
    text,
    wrappers,
)
from toolreeve.policy.shell.printing import Printed
from toolreeve.policy.shell.site import Site
from toolreeve.policy.shell.specs import Program
from toolreeve.policy.shell.words import Word

Judge = Callable[[Program, list[Word], Site], Printed]

JUDGES: Mapping[str, Judge] = {
    "anything": text.anything,
    "awk": awk.judge,
    "command": wrappers.command,
    "computes": filters.computes,
    "curl": downloads.curl,
    "date": filters.date,
    "dashed_verb": filters.dashed_verb,
    "dd": filters.dd,
    "dig": downloads.dig,
    "env": wrappers.env,
    "fd": text.fd,
    "find": find.judge,
    "flock": shells.flock,
    "fzf": text.fzf,
    "gh_api": downloads.gh_api,
    "git": git.judge,
    "git_blame": contents.blame,
    "git_branch": git.branch,
    "git_clean": placing.clean,
    "git_config": git.config,
    "git_contents": contents.contents,
    "git_grep": contents.grep,
    "git_remote": git.remote,
    "git_reset": contents.reset,
    "grep": text.grep,
    "here": text.here,
    "ip": filters.ip,
    "jq": text.jq,
    "kubectl_get": filters.kubectl_get,
    "mirror": placing.mirror,
    "place": placing.place,
    "printf": text.printf,
    "python": interpreters.python,
    "query": sql.query,
    "rm": filters.remove,
    "second_verb": filters.second_verb,
    "sed": sed.judge,
    "shell": shells.shell,
    "split": placing.split,
    "tar": tar.judge,
    "unfed": filters.unfed,
    "unpack": placing.unpack,
    "variables": text.variables,
    "verbs": cloud.verbs,
    "watch": shells.watch,
    "wget": downloads.wget,
    "wrapper": wrappers.wrapper,
    "xargs": wrappers.xargs,
    "yq": text.yq,
}
