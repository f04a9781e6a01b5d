"""Positions where a value would be code, and where it is data."""

import pytest

from tests.scripted.scripts import run
from toolreeve.core.errors import ToolError
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.template import ValueRules, compile_script

INTEGER = "n is an integer variable, which evaluates values"
UNCLEAR = "a variable is set whose name is not fixed"
REFUSED = {
    "chooses a program": ("{{x}} a", "{{x}} would choose the program that runs"),
    "chooses a program after keywords": ("if ! {{x}}; then :; fi", "{{x}} would choose the program that runs"),
    "chooses a program behind env": ("env A=1 {{x}}", "{{x}} would choose the program that runs"),
    "chooses a program behind timeout": ("timeout -s KILL 5 {{x}}", "{{x}} would choose the program that runs"),
    "chooses a program behind many": ("nice -n 5 nohup setsid {{x}}", "{{x}} would choose the program that runs"),
    "chooses a program behind xargs": ("ls | xargs -n 1 {{x}}", "{{x}} would choose the program that runs"),
    "chooses a program behind exec": ("exec {{x}}", "{{x}} would choose the program that runs"),
    "chooses a program in find": ("find . -exec {{x}} \\;", "{{x}} would choose the program that runs"),
    "chooses a program by a variable": ('x={{x}}; "$x" a', "$x would choose the program that runs"),
    "is an option of env": ("env -S{{x}} a", "{{x}} would be split into a command by env"),
    "eval": ('eval "echo {{x}}"', "{{x}} would be evaluated by 'eval'"),
    "eval of a variable": ('x="{{x}}"; y=$x; eval "$y"', "$y would be evaluated by 'eval'"),
    "eval in a function": ('f() { eval "$1"; }; f "{{x}}"', "$1 would be evaluated by 'eval'"),
    "eval of a line read": ('echo "{{x}}" | while read -r l; do eval "$l"; done', "$l would be evaluated by 'eval'"),
    "source": ("source {{x}}", "{{x}} would be evaluated by 'source'"),
    "trap": ('trap "{{x}}" EXIT', "{{x}} would be evaluated by 'trap'"),
    "arithmetic": ("echo $(({{x}} + 1))", "is in arithmetic, which evaluates it"),
    "old arithmetic": ("echo $[{{x}} + 1]", "is in arithmetic, which evaluates it"),
    "arithmetic command": ("(( {{x}} > 1 ))", "is in arithmetic, which evaluates it"),
    "arithmetic of a variable": ("x={{x}}; echo $((x + 1))", "x is evaluated by arithmetic"),
    "arithmetic loop": ("n={{x}}; for ((i = 0; i < n; i++)); do :; done", "n is evaluated by arithmetic"),
    "let": ("let {{x}}", "{{x}} would be evaluated by 'let'"),
    "numeric comparison": ("[[ {{x}} -gt 3 ]]", "{{x}} is evaluated by [[ … ]]"),
    "numeric comparison of a variable": ('x="{{x}}"; [[ $x -gt 3 ]]', "x is evaluated by [[ … ]]"),
    "subscript": ("a[{{x}}]=1", "{{x}} is evaluated as a subscript"),
    "subscript in a list": ("a=([{{x}}]=1)", "{{x}} is in a subscript"),
    "subscript read": ('x={{x}}; echo "${a[$x]}"', "x is evaluated as a subscript"),
    "offset": ('x={{x}}; y=abc; echo "${y:$x}"', "x is evaluated as an offset"),
    "length": ('x={{x}}; y=abc; echo "${y:0:$x}"', "x is evaluated as an offset"),
    "integer variable": ("declare -i n; n={{x}}", "n is an integer variable, which evaluates values"),
    "name reference": ("declare -n n={{x}}", "n is a name reference, which evaluates values"),
    "indirection": ('x={{x}}; echo "${!x}"', "$x would name a variable"),
    "prompt": ('x={{x}}; echo "${x@P}"', "$x would be expanded as a prompt"),
    "name of a variable": ("export {{x}}=1", "{{x}} would name a variable"),
    "name to unset": ("unset {{x}}", "{{x}} would name a variable"),
    "name to print into": ("printf -v {{x}} a", "{{x}} would name a variable"),
    "name to test": ("[[ -v {{x}} ]]", "{{x}} would name a variable"),
    "name to test with [": ('[ -v "{{x}}" ]', "{{x}} would name a variable"),
    "name to test with test": ('test -v "{{x}}"', "{{x}} would name a variable"),
    "test of its own choice": (
        'x="{{x}}"; test "$x" "{{x}}"',
        "{{x}} would be what a test of the caller's choice is about",
    ),
    "subscript to unset": ("x={{x}}; unset 'a[$x]'", "x would name a variable"),
    "subscript to print into": ("x={{x}}; printf -v 'a[$x]' y", "x would name a variable"),
    "subscript to read into": ("x={{x}}; read 'a[$x]'", "x would be evaluated by 'read'"),
    "expression for let": ("x={{x}}; let 'n = x + 1'", "x would be evaluated by 'let'"),
    "expression for an integer": ("x={{x}}; declare -i n='x + 1'", "x would be evaluated by the declaration"),
    "search path": ("PATH={{x}} ls", "the caller's text would set PATH, which chooses what runs"),
    "search path by env": ("env LD_PRELOAD={{x}} ls", "{{x}} would set LD_PRELOAD, which chooses what runs"),
    "shell": ('bash -c "echo {{x}}"', "{{x}} would be run by a shell as code"),
    "shell with other options": ("sh -ec '{{x}}'", "{{x}} would be run by a shell as code"),
    "shell script": ("bash {{x}}", "{{x}} would be run by a shell as code"),
    "shell input": ('echo "{{x}}" | bash', "{{x}} would reach a shell as code, through its input"),
    "shell heredoc": ("bash <<EOF\n{{x}}\nEOF\n", "{{x}} would reach a shell as code, through its input"),
    "shell heredoc in a pipe": (
        "cat <<'EOF' | sh -s\n{{x}}\nEOF\n",
        "{{x}} would reach a shell as code, through its input",
    ),
    "shell here string": ('bash <<< "{{x}}"', "{{x}} would reach a shell as code, through its input"),
    "shell input from a program": ("bash < <(echo {{x}})", "{{x}} would reach a shell as code, through its input"),
    "shell in a group": (
        '{ echo a; bash; } <<< "{{x}}"',
        "{{x}} would reach a shell as code, through its input",
    ),
    "shell in a subshell": ('(bash) <<< "{{x}}"', "{{x}} would reach a shell as code, through its input"),
    "shell that reads a descriptor": (
        'exec 3<<< "{{x}}"; bash <&3',
        "{{x}} would reach a shell as code, through its input",
    ),
    "shell in a loop": (
        "while :; do bash -s; done <<EOF\n{{x}}\nEOF\n",
        "{{x}} would reach a shell as code, through its input",
    ),
    "shell further on in a pipe": (
        'cat <<< "{{x}}" | tee log | sudo -u a bash',
        "{{x}} would reach a shell as code, through its input",
    ),
    "shell substitution": ("bash <(echo {{x}})", "{{x}} would be run by a shell as code"),
    "shell behind a wrapper": ("timeout 5 sh -c {{x}}", "{{x}} would be run by a shell as code"),
    "shell in find": (
        "find . -name {{x}} -exec sh -c 'echo {}' \\;",
        "what find finds ({{x}}) would be run by a shell as code",
    ),
    "remote shell": ("ssh host ls {{x}}", "{{x}} would be code for ssh"),
    "python": ('python3 -c "print({{x}})"', "{{x}} would be code for python"),
    "python script": ("python3 {{x}}", "{{x}} would choose the program that python runs"),
    "python heredoc": ("python3 - <<EOF\nprint({{x}})\nEOF\n", "{{x}} would reach python as code, through its input"),
    "perl": ("perl -ne '{{x}}' file", "{{x}} would be code for perl"),
    "awk": ("awk '/{{x}}/ {print}' file", "{{x}} would be code for awk"),
    "sed": ("sed 's/a/{{x}}/' file", "{{x}} would be code for sed"),
    "sed expression": ("sed -n -e {{x}} file", "{{x}} would be code for sed"),
    "psql heredoc": ("psql <<EOF\n{{x}}\nEOF\n", "{{x}} would be part of an SQL statement"),
    "words of a variable": ('x="{{x}}"; cat $x', "$x is split into words"),
    "option of a program that runs others": (
        'x=$(echo "{{x}}"); tar tf "$x"',
        "{{x}} could make tar start a program, as an address",
    ),
    "arguments of a program that runs others": (
        'echo "{{x}}" | xargs find',
        "what xargs reads ({{x}}) could be an option with which find runs programs",
    ),
    "backticks": ("echo `echo {{x}}`", "is inside backticks"),
    "braces": ("echo ${y:-{{x}}}", "is inside ${…}"),
    "dollar": ("echo ${{x}}", "follows a $ directly"),
    "backslash": ("echo \\{{x}}", "follows a backslash directly"),
    "half a quote in a section": ('echo {{#x}}"{{/x}} a"', "the section does not end in the quoting it began in"),
    "half a heredoc in a section": (
        "cat <<EOF\n{{#x}}\nEOF\n{{/x}}\nEOF\n",
        "the section does not end in the quoting it began in",
    ),
    "delimiter beside a section": (
        "cat <<EOF\n{{#x}}a{{/x}}EOF\nEOF\n",
        "a section shares its line with the heredoc's delimiter",
    ),
    "comment after a section": ("echo {{#x}}a{{/x}}# b", "the text after the section is ambiguous"),
    "unfinished": ('echo "{{x}}', "the double context opened here is never closed"),
    "no bash at all": ("if {{x}} then (", "the bare context opened here is never closed"),
    "shell behind a function of its name, by a path": (
        'bash(){ :; }; /bin/bash -c "{{x}}"',
        "{{x}} would be run by a shell as code",
    ),
    "shell behind a function of its name, by command": (
        'bash(){ :; }; command bash -c "{{x}}"',
        "{{x}} would be run by a shell as code",
    ),
    "shell behind a function of its name, by env": (
        'bash(){ :; }; env bash -c "{{x}}"',
        "{{x}} would be run by a shell as code",
    ),
    "shell before a function of its name": ('bash -c "{{x}}"; bash(){ :; }', "{{x}} would be run by a shell as code"),
    "shell beside a function that may not be defined": (
        'if false; then bash(){ :; }; fi; bash -c "{{x}}"',
        "{{x}} would be run by a shell as code",
    ),
    "shell after a function is unset": (
        'bash(){ :; }; unset -f bash; bash -c "{{x}}"',
        "{{x}} would be run by a shell as code",
    ),
    "shell that a function of its name runs": (
        'bash() { /bin/bash "$@"; }; bash -c "{{x}}"',
        "$@ would be run by a shell as code",
    ),
    "git that a function of its name runs": (
        'git() { command git "$@"; }; git -c "{{x}}" status',
        "$@ would choose the command of git",
    ),
    "python beside a function named alike": ('python(){ :; }; python3 -c "{{x}}"', "{{x}} would be code for python"),
    "integer variable by a quoted flag": (
        'declare "-i" n; n="{{x}}"',
        "n is an integer variable, which evaluates values",
    ),
    "integer variable by a flag in a variable": (
        'o=-i; declare $o n; n="{{x}}"',
        "n is an integer variable, which evaluates values",
    ),
    "integer variable by a flag that is not fixed": (
        'declare $o n; n="{{x}}"',
        "n is an integer variable, which evaluates values",
    ),
    "integer variable of a function": (
        'f() { local "-i" n; n="{{x}}"; }; f',
        "n is an integer variable, which evaluates values",
    ),
    "integer variable by builtin": (
        "builtin declare -i n; n={{x}}",
        "n is an integer variable, which evaluates values",
    ),
    "integer variable by command": (
        "command typeset -i n; n={{x}}",
        "n is an integer variable, which evaluates values",
    ),
    "integer variable by command with an option": (
        "command -p declare -i n; n={{x}}",
        "n is an integer variable, which evaluates values",
    ),
    "integer variable by an escaped builtin": (
        "\\declare -i n; n={{x}}",
        "n is an integer variable, which evaluates values",
    ),
    "integer variable by a builtin in a variable": (
        "d=declare; $d -i n; n={{x}}",
        "n is an integer variable, which evaluates values",
    ),
    "integer variable that is read": (
        'builtin declare "-i" n; read n <<< "{{x}}"',
        "n is an integer variable, which evaluates values",
    ),
    "expression for an integer by a quoted flag": (
        'x={{x}}; declare "-i" n=x',
        "x would be evaluated by the declaration",
    ),
    "expression for an integer by builtin": ("x={{x}}; builtin declare -i n=x", "x would be evaluated by 'declare'"),
    "OPTIND": ('OPTIND="{{x}}"', "OPTIND is an integer variable, which evaluates values"),
    "OPTIND that is read": ('read OPTIND <<< "{{x}}"', "OPTIND is an integer variable, which evaluates values"),
    "OPTIND that is printed into": (
        'printf -v OPTIND %s "{{x}}"',
        "OPTIND is an integer variable, which evaluates values",
    ),
    "HISTCMD": ("HISTCMD={{x}}", "HISTCMD is an integer variable, which evaluates values"),
    "RANDOM": ("RANDOM={{x}}", "RANDOM is an integer variable, which evaluates values"),
    "RANDOM as a loop's variable": (
        "for RANDOM in {{x}}; do :; done",
        "RANDOM is an integer variable, which evaluates values",
    ),
    "SECONDS": ("SECONDS={{x}}", "SECONDS is an integer variable, which evaluates values"),
    "SECONDS by a name": ("x={{x}}; SECONDS=x", "x would be evaluated: SECONDS is an integer variable"),
    "SRANDOM": ("SRANDOM={{x}}", "SRANDOM is an integer variable, which evaluates values"),
    "EPOCHSECONDS": ("EPOCHSECONDS={{x}}", "EPOCHSECONDS is an integer variable, which evaluates values"),
    "LINENO": ("LINENO={{x}}", "LINENO is an integer variable, which evaluates values"),
    "BASHPID": ("BASHPID={{x}}", "BASHPID is an integer variable, which evaluates values"),
    "arithmetic as a default": ('x="{{x}}"; echo "${y:-$((x))}"', "x is in a substitution inside ${…}"),
    "arithmetic as an alternative": ('x="{{x}}"; echo "${y:+$((x))}"', "x is in a substitution inside ${…}"),
    "arithmetic within a default": ('x="{{x}}"; echo "${y:-a$((x))}"', "x is in a substitution inside ${…}"),
    "arithmetic in the default of a default": (
        'x="{{x}}"; echo "${y:-${z:-$((x))}}"',
        "x is in a substitution inside ${…}",
    ),
    "old arithmetic as a default": ('x="{{x}}"; echo "${z:-$[x]}"', "x is in a substitution inside ${…}"),
    "arithmetic in a pattern": ('x="{{x}}"; echo "${y#$((x))}"', "x is in a substitution inside ${…}"),
    "arithmetic in a pattern to replace": ('x="{{x}}"; echo ${y//$((x))/b}', "x is in a substitution inside ${…}"),
    "arithmetic in a pattern to capitalise": ('x="{{x}}"; echo "${y^$((x))}"', "x is in a substitution inside ${…}"),
    "eval in a pattern": ('x="{{x}}"; echo "${y#$(eval "$x")}"', "x is in a substitution inside ${…}"),
    "eval in a pattern, by backticks": ('x="{{x}}"; echo "${y#`eval "$x"`}"', "x is in a substitution inside ${…}"),
    "shell in a pattern": ('x="{{x}}"; echo "${y%$(bash -c "$x")}"', "x is in a substitution inside ${…}"),
    "arithmetic as a default in a heredoc": (
        'x="{{x}}"; cat <<EOF\n${y:-$((x))}\nEOF\n',
        "x is in a substitution inside ${…}",
    ),
    "eval in a pattern in a heredoc": (
        'x="{{x}}"; cat <<EOF\n${y#$(eval "$x")}\nEOF\n',
        "x is in a substitution inside ${…}",
    ),
    "file for awk that runs lines": (
        "echo \"{{x}}\" > f; awk '{system($0)}' f",
        "a file written from a value would reach a program of awk that runs commands",
    ),
    "file for awk that pipes lines": (
        'echo "{{x}}" > f; awk \'{print|"sh"}\' f',
        "a file written from a value would reach a program of awk that runs commands",
    ),
    "file that awk reads by itself": (
        'echo "{{x}}" > f; awk \'BEGIN{while((getline l<"f")>0) system(l)}\'',
        "a file written from a value would reach a program of awk that runs commands",
    ),
    "file in a variable for awk": (
        'f=$(mktemp); echo "{{x}}" > "$f"; awk \'{system($0)}\' "$f"',
        "a file written from a value would reach a program of awk that runs commands",
    ),
    "files of a pattern for awk": (
        "echo \"{{x}}\" > f; awk '{system($0)}' *",
        "a file written from a value would reach a program of awk that runs commands",
    ),
    "file for sed that runs lines": (
        'echo "{{x}}" > f; sed e f',
        "a file written from a value would reach a program of sed that runs commands",
    ),
    "file for sed that runs matches": (
        "echo \"{{x}}\" > f; sed 's/a/b/e' f",
        "a file written from a value would reach a program of sed that runs commands",
    ),
    "file for perl that runs lines": (
        "echo \"{{x}}\" > f; perl -ne 'system($_)' f",
        "a file written from a value would reach code for perl that may evaluate it",
    ),
    "file for perl that evaluates lines": (
        'echo "{{x}}" > f; perl -ne eval f',
        "a file written from a value would reach code for perl that may evaluate it",
    ),
    "file that python evaluates": (
        'echo "{{x}}" > f; python3 -c \'exec(open("f").read())\'',
        "a file written from a value would reach code for python that may evaluate it",
    ),
    "file for ruby that runs lines": (
        "echo \"{{x}}\" > f; ruby -ne 'system($_)' f",
        "a file written from a value would reach code for ruby that may evaluate it",
    ),
    "archive for tar": (
        'echo "{{x}}" | tar x; bash s.sh',
        "the file s.sh, written from a value, would be run by a shell as code",
    ),
    "archive for tar with options": (
        'echo "{{x}}" | tar -x -fcat.tar; bash s.sh',
        "the file s.sh, written from a value, would be run by a shell as code",
    ),
    "archive for tar by a long option": (
        'echo "{{x}}" | tar --extract; ./s.sh',
        "the file ./s.sh, written from a value, would be run",
    ),
    "archive for tar behind a wrapper": (
        'echo "{{x}}" | sudo tar xf -; bash s.sh',
        "the file s.sh, written from a value, would be run by a shell as code",
    ),
    "archive for tar in a subshell": (
        'echo "{{x}}" | (cd d; tar x); bash s.sh',
        "the file s.sh, written from a value, would be run by a shell as code",
    ),
    "archive for unzip": (
        'echo "{{x}}" > a.zip; unzip a.zip; bash s.sh',
        "the file s.sh, written from a value, would be run by a shell as code",
    ),
    "archive for 7z": (
        'echo "{{x}}" > a.7z; 7z x a.7z; bash s.sh',
        "the file s.sh, written from a value, would be run by a shell as code",
    ),
    "archive for ar": (
        'echo "{{x}}" > a.a; ar x a.a; bash s.sh',
        "the file s.sh, written from a value, would be run by a shell as code",
    ),
    "file for uudecode": (
        'echo "{{x}}" | uudecode; bash s.sh',
        "the file s.sh, written from a value, would be run by a shell as code",
    ),
    "directory": ('cd "{{x}}"; bash -c "ls $PWD"', "$PWD would be run by a shell as code"),
    "directory before": ('cd "{{x}}"; cd /; bash -c "ls $OLDPWD"', "$OLDPWD would be run by a shell as code"),
    "stack of directories": ('pushd "{{x}}"; bash -c "ls ${DIRSTACK[0]}"', "$DIRSTACK would be run by a shell as code"),
    "directory printed by pwd": ('cd "{{x}}"; bash -c "ls $(pwd)"', "what pwd prints would be run by a shell as code"),
    "directory printed by pwd in backticks": (
        'cd "{{x}}"; bash -c "ls `pwd`"',
        "what pwd prints would be run by a shell as code",
    ),
    "directory printed by pwd behind command": (
        'cd -- "{{x}}"; eval "ls $(command pwd -P)"',
        "what pwd prints would be evaluated by 'eval'",
    ),
    "directory printed by pwd by a path": (
        'cd "{{x}}"; eval "ls $(LC_ALL=C /bin/pwd)"',
        "what pwd prints would be evaluated by 'eval'",
    ),
    "directory printed by dirs": ('cd "{{x}}"; d=$(dirs); eval "ls $d"', "$d would be evaluated by 'eval'"),
    "directory changed by builtin": ('builtin cd "{{x}}"; eval "ls $PWD"', "$PWD would be evaluated by 'eval'"),
    "directory of an inner shell": (
        'cd "{{x}}"; bash -c \'eval "$PWD"\'',
        "$PWD would be evaluated by 'eval', inside the code of a shell",
    ),
    "output of a function with an assignment before it": (
        'f() { echo "{{x}}"; }; eval "$(A=1 f)"',
        "what f prints would be evaluated by 'eval'",
    ),
    "OPTIND that is read by a quoted name": (
        'read "OPTIND" <<< "{{x}}"',
        "OPTIND is an integer variable, which evaluates values",
    ),
    "OPTIND that is read by a name in a variable": (
        'n=OPTIND; read $n <<< "{{x}}"',
        "OPTIND is an integer variable, which evaluates values",
    ),
    "OPTIND that is printed into, glued": (
        'printf -vOPTIND %s "{{x}}"',
        "OPTIND is an integer variable, which evaluates values",
    ),
    "OPTIND that is printed into by a quoted name": (
        'printf -v "OPTIND" %s "{{x}}"',
        "OPTIND is an integer variable, which evaluates values",
    ),
    "search path by a quoted name": (
        'read "PATH" <<< "{{x}}"; ls',
        "the caller's text would set PATH, which chooses what runs",
    ),
    "directory changed by a variable": ('c=cd; $c "{{x}}"; eval "ls $PWD"', "$PWD would be evaluated by 'eval'"),
    "shell after a function is unset by builtin": (
        'bash(){ :; }; builtin unset -f bash; bash -c "{{x}}"',
        "{{x}} would be run by a shell as code",
    ),
    "shell after a function is unset without an option": (
        'bash(){ :; }; unset bash; bash -c "{{x}}"',
        "{{x}} would be run by a shell as code",
    ),
    "integer declared by eval": ('eval "declare -i n"; n="{{x}}"', INTEGER),
    "integer declared by eval in words": ('eval declare -i n; n="{{x}}"', INTEGER),
    "integer declared by code in a variable": ('d="declare -i n"; eval "$d"; n="{{x}}"', INTEGER),
    "integer declared by eval behind builtin": ("builtin eval 'declare -i n'; n=\"{{x}}\"", INTEGER),
    "integer declared by eval in a variable": ("e=eval; $e 'declare -i n'; n=\"{{x}}\"", INTEGER),
    "integer declared by a trap": ("trap 'declare -i n' DEBUG; n=\"{{x}}\"", INTEGER),
    "integer set by eval": ("declare -i n; x=\"{{x}}\"; eval 'n=$x'", INTEGER),
    "integer declared by eval of a name in a variable": ('v=n; eval "declare -i $v"; n="{{x}}"', INTEGER),
    "integer declared by a name in a variable": ('v=n; declare -i $v; n="{{x}}"', INTEGER),
    "integer declared in braces": ('declare -i {n,m}; n="{{x}}"', UNCLEAR),
    "variable set by eval": ('x="{{x}}"; eval \'y=$x\'; bash -c "$y"', "$y would be run by a shell as code"),
    "variable set by a trap": ('x="{{x}}"; trap \'y=$x\' DEBUG; eval "$y"', "$y would be evaluated by 'eval'"),
    "function defined by eval": (
        'eval \'f() { echo "$x"; }\'; x="{{x}}"; eval "$(f)"',
        "what f prints would be evaluated by 'eval'",
    ),
    "directory changed by eval": ('x="{{x}}"; eval \'cd "$x"\'; eval "ls $PWD"', "$PWD would be evaluated by 'eval'"),
    "OPTIND as one of several names": (
        'for n in a OPTIND; do read $n <<< "{{x}}"; done',
        "OPTIND is an integer variable, which evaluates values",
    ),
    "search path as one of several names": (
        'for n in a PATH; do read "$n" <<< "{{x}}"; done; ls',
        "the caller's text would set PATH, which chooses what runs",
    ),
    "OPTIND as one of several names that are printed into": (
        'for n in a OPTIND; do printf -v "$n" %s "{{x}}"; done',
        "OPTIND is an integer variable, which evaluates values",
    ),
    "OPTIND in two parts": ('p=OPT; read ${p}IND <<< "{{x}}"', "OPTIND is an integer variable, which evaluates values"),
    "name that is appended to": ('n=OPT; n+=IND; read $n <<< "{{x}}"', UNCLEAR),
    "name by default": ('n=; : ${n:=OPTIND}; read $n <<< "{{x}}"', UNCLEAR),
    "name in braces": ('read {a,OPTIND} <<< "{{x}}"', UNCLEAR),
    "name from a pattern": ('for n in *; do read "$n" <<< "{{x}}"; done', UNCLEAR),
    "program that is appended to": ('c=ev; c+=al; $c "{{x}}"', "{{x}} would reach a program that is not fixed: $c"),
    "program in a variable that is unset": (
        'n=echo; unset n; $n bash -c "{{x}}"',
        "{{x}} would reach a program that is not fixed: $n",
    ),
    "directory as a tilde": ('cd "{{x}}"; eval ls ~+', "~+ would be evaluated by 'eval'"),
    "directory as a tilde in a variable": ('cd "{{x}}"; d=~+/a; eval "ls $d"', "$d would be evaluated by 'eval'"),
    "directory before as a tilde": ('cd "{{x}}"; cd /; bash -c ~-', "~- would be run by a shell as code"),
    "directory of the stack as a tilde": ('pushd "{{x}}"; d=~1; eval "ls $d"', "$d would be evaluated by 'eval'"),
    "archive for tar by name": (
        'tar xf "{{x}}"; bash s.sh',
        "the file s.sh, written from a value, would be run by a shell as code",
    ),
    "archive for unzip by name": ('unzip "{{x}}"; ./s.sh', "the file ./s.sh, written from a value, would be run"),
    "archive with a makefile": (
        'tar xf "{{x}}"; make',
        "a file that a value has named or brought would be obeyed by make",
    ),
    "archive with a module": (
        "tar xf \"{{x}}\"; python3 -c 'import foo'",
        "a file that a value has named or brought would be obeyed by python",
    ),
    "repository that is cloned": (
        'git clone "{{x}}" d; bash d/s.sh',
        "the file d/s.sh, written from a value, would be run by a shell as code",
    ),
    "patch by name": ('git apply "{{x}}"; ./s.sh', "the file ./s.sh, written from a value, would be run"),
    "name of a file for tar": (
        'touch "{{x}}"; tar cf a.tar *',
        "the name of a file ({{x}}) could be an option with which tar runs programs",
    ),
    "name of a folder for rsync": (
        'mkdir "{{x}}"; rsync -a * d/',
        "the name of a file ({{x}}) could make rsync start a program, as an address",
    ),
    "name of a written file for tar": (
        'echo a > "{{x}}"; tar cf a.tar *',
        "the name of a file ({{x}}) could be an option with which tar runs programs",
    ),
    "name of a file in a loop": (
        'touch "{{x}}"; for f in *; do bash -c "ls $f"; done',
        "$f would be run by a shell as code",
    ),
    "name of a file in an array": ('touch "{{x}}"; a=(*); bash -c "${a[0]}"', "$a would be run by a shell as code"),
    "name of a file that is listed": ('touch "{{x}}"; f=$(ls); eval "echo $f"', "$f would be evaluated by 'eval'"),
    "name of a file that xargs reads": (
        'touch "{{x}}"; ls | xargs tar cf a',
        "what xargs reads (what ls prints) could be an option with which tar runs programs",
    ),
    "name of a file for perl": (
        "touch \"{{x}}\"; perl -ne 'print' *",
        "the name of a file ({{x}}) would be opened by perl, which can run it",
    ),
    "file written by an inner shell": (
        'bash -c \'echo "$1" > s.sh\' _ "{{x}}"; bash s.sh',
        "the file s.sh, written from a value, would be obeyed by bash",
    ),
    "input written by an inner shell": (
        "sh -c 'cat > s.sh' <<< \"{{x}}\"; bash s.sh",
        "the file s.sh, written from a value, would be obeyed by bash",
    ),
    "file run before it is written": (
        'while :; do bash s.sh; sh -c \'echo "$1" > s.sh\' _ "{{x}}"; done',
        "the file s.sh, written from a value, would be obeyed by bash",
    ),
    "line for the command of mapfile": (
        'mapfile -t -c 1 -C eval a <<< "{{x}}"',
        "what is read would reach the command behind -C of mapfile",
    ),
    "prompt of a trace": ("PS4='$(eval $x)'; x=\"{{x}}\"; set -x; ls", "PS4 is expanded again where it is shown"),
    "file for run-parts": (
        'echo "{{x}}" > f; run-parts .',
        "the file f, written from a value, would be obeyed by run-parts",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_template_is_refused_when_its_value(why: str) -> None:
    script, problem = REFUSED[why]

    with pytest.raises(TemplateProblem) as caught:
        compile_script(script, {})

    assert caught.value.problem == problem


FINE = [
    'x="{{x}}"; if [[ -z "$x" || ! -f "$x" ]]; then exit 1; fi; cat "$x"',
    "bash -c 'echo \"$1\"' _ {{x}}",
    "find . -name '*.py' -exec sh -c 'grep -l \"$1\" \"$2\"' _ {{x}} {} \\;",
    "python3 tool.py {{x}}",
    'f=$(mktemp); trap \'rm -f "$f"\' EXIT; printf %s {{x}} > "$f"; unset f',
    'test -n "{{x}}" && test "{{x}}" = a',
    "python3 -c 'import sys; print(sys.argv[1])' {{x}}",
    "awk -v word={{x}} 'index($0, word)' file",
    "sed -n 1p {{x}}",
    "jq --arg v {{x}} '.[$v]' file",
    'read -r a <<< "{{x}}"; printf -v n %d "$a"; echo $((n + 1))',
    'declare -A m; k={{x}}; m[$k]=1; echo "${m[$k]}"',
    'set -- {{x}}; echo "$1"',
    "timeout {{x}} curl -s https://example.com",
    "env NAME={{x}} program",
    "echo {{x}} > {{x}}",
    'local_name="{{x}}"; [ "$local_name" -gt 3 ]',
    "case {{x}} in a*) echo a ;; *) echo b ;; esac",
    'tar -tf "{{x}}"; tar tf ./"{{x}}"',
    'find {{x}} -name "{{x}}" -exec grep -l "{{x}}" {} \\; | head -{{x}}',
    "cat <<EOF | grep x > out 2>&1\n{{x}}\nEOF\n",
    "i=0; while (( i < 3 )); do echo {{x}}; i=$((i + 1)); done",
    'script() { echo "$1"; }; script "{{x}}"',
    'f() { local -r a="$1"; declare b=$2; export c="$b"; echo "$a"; }; f "{{x}}"',
    'SECONDS=0; echo "{{x}}" "$SECONDS" $((RANDOM % 3))',
    'while getopts a: o; do echo "$OPTARG"; done; shift $((OPTIND - 1)); echo {{x}}',
    'x="{{x}}"; echo "${x:-$(date)}" "${x#$(date)}" "${x#*/}" "${y:-$(cat "$x")}" "${n:-$((1 + 2))}"',
    "echo \"{{x}}\" > f; awk '{print $1}' f; sed -n 1p f; perl -ne 'print' f; python3 -c 'print(open(\"f\").read())'",
    'echo "{{x}}" > f; tar -czf a.tgz f; tar tf a.tgz; bash s.sh',
    'curl -s "{{x}}" | tar xz -C d; ls d',
    'cd "{{x}}"; find "$PWD" -name a; git -C "$PWD" status; bash -c \'ls "$PWD"\'; echo "$(pwd)"',
    'cd "{{x}}"; tar czf a.tgz -C "$PWD" .; name=$(basename "$PWD"); echo "$name"',
    'cd "{{x}}"; git log | awk \'{print | "sort"}\'',
    'cd "$(dirname "$0")"; bash -c "ls $PWD"; echo {{x}}',
    '{ read -r a; echo "$a"; } <<< "{{x}}"',
    'y=abc; n={{x}}; printf -v i %d "$n"; echo "${y:$i}" "${y:$i:1}"',
    'cd "{{x}}"; ls ~+ ~-; eval "ls ~+"',
    'mkdir -p "{{x}}"; cp *.txt "{{x}}"; tar czf a.tgz ./*; for f in *.txt; do wc -l "$f"; done',
    'echo "{{x}}" > f; tar cf a.tar *',
    'tar xf "{{x}}" -C d; ls d; grep -r a d',
    'for n in a b; do read -r "$n"; echo "${!n}"; done < list; echo "{{x}}"',
    'read -r -p "Name: " -t 5 name; read -ra words <<< "{{x}}"; echo "$name" "${words[0]}"',
    "eval 'y=1; echo \"$y\"'; trap 'rm -f f' EXIT; echo {{x}}",
    "PS4='+ '; set -x; echo {{x}}",
    'npm version patch -m "{{x}}"',
]


@pytest.mark.parametrize("script", FINE)
def test_ordinary_scripts_are_accepted(script: str) -> None:
    compile_script(script, {})


def test_numbers_and_chosen_words_may_stand_where_other_values_may_not() -> None:
    terms = {"n": ValueRules(numeric=True), "op": ValueRules(choices=("sort", "uniq"))}

    assert run("n={{n}}; echo $((n + 1))", {"n": 41}, **terms) == "42\n"
    assert run("printf 'b\\na\\n' | {{op}}", {"op": "sort"}, **terms) == "a\nb\n"
    assert run("printf 'a\\nb\\n' | sed -n '{{n}}p'", {"n": 2}, **terms) == "b\n"


def test_a_parameter_that_is_code_says_so() -> None:
    assert run('bash -c "{{code}}"', {"code": "echo run; echo it"}, code=ValueRules(allow_code=True)) == "run\nit\n"


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ('psql -c "{{x}}"', "\\! id"),
        ('sqlite3 -safe db "{{x}}"', ".shell id"),
        ('[ "{{x}}" = a ]', "-v"),
        ('printf "{{x}}"', "-va[$(id)]"),
        ('tar tf "{{x}}"', "--checkpoint-action=exec=id"),
        ('git log "{{x}}"', "--output=x"),
        ('find "{{x}}"', "-delete"),
        ('find . -exec grep "{{x}}" {} \\;', ";"),
    ],
)
def test_a_value_cannot_begin_with_a_command_of_the_program_that_gets_it(script: str, value: str) -> None:
    compiled = compile_script(script, {})

    assert compiled.render({"x": "a.b"}).values == ["a.b"]
    with pytest.raises(ToolError, match="may not begin with"):
        compiled.render({"x": value})


@pytest.mark.parametrize("payload", ["a[$(touch pwned)]", "x=$(touch pwned)", "1+a[$(touch pwned >&2)]"])
def test_bash_would_have_run_what_arithmetic_is_given(payload: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The attack that the refusal of arithmetic is for, on a script that declares the value a number."""
    place = tmp_path_factory.mktemp("attack")
    script = f"cd {place}; x={{{{n}}}}; echo $((x))"

    with pytest.raises(ToolError, match="not a number"):
        run(script, {"n": payload}, n=ValueRules(numeric=True))

    assert list(place.iterdir()) == []
