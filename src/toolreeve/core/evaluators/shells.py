"""Shells, builtins and programs that take every word for code: data."""

from toolreeve.core.evaluators.names import words

SHELLS = words(
    """
    ash bash dash ksh mksh rbash sh zsh
    """
)

FOREIGN_SHELLS = words(
    """
    csh elvish fish nu powershell pwsh rc tcsh xonsh
    """
)
"""Shells whose grammar is not bash's: no value is passed to them at all."""

BUILTINS = words(
    """
    . bind compgen complete compopt coproc declare enable export fc getopts hash history jobs let local mapfile
    read readarray readonly set shopt source typeset ulimit unset wait
    """
)
"""Builtins that take arguments for names of variables, for files of code, or for switches of the shell itself."""

JOINING = words(
    """
    alias ansible at autossh batch bb beeline bq capsh clickhouse clickhouse-client cling clisp clojure clush
    consul-template cqlsh crontab crystal csi cypher-shell dc dmenu dpkg-reconfigure elixir emacs emacsclient
    erl eval ex expect ftp fzf gdb ghc ghci git-shell gnuplot gomplate gp groovy gst guile hive
    hyperfine iex influx isql
    j2 janet jimsh jinja2 jshell kotlin lftp lldb m4 matlab maxima mongo mongosh mosh mutt nim nvim ocaml octave
    osascript parallel pdsh perf presto procmail racket raku rlogin rofi rsh run-parts runghc sage sbcl scala scheme
    screen script sftp sk socat sqlcmd sqlplus ssh sshpass su swift tcc tclsh tmux trap trino vi view vim watch
    watchexec wish
    """
)
"""Programs that take their arguments, or their input, for code or for commands of theirs: no value at all."""
