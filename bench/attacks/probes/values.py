"""Probes of YAML tools: values for programs that evaluate their arguments.

A tool that is refused at load is blocked; one that loads is called, and must not have made a file named PWNED.
"""

import json

from bench.attacks.probes.testbed import Testbed, Verdict, judge, probe

RUN = "touch PWNED"
INDEX = "a[$(touch PWNED)]"
EVALUATORS: dict[str, tuple[str, str]] = {
    "perl -n": ("perl -ne 'print' \"{{x}}\"", "touch PWNED|"),
    "perl -p": ("perl -pe 's/a/b/' -- \"{{x}}\"", "touch PWNED|"),
    "perl -e": ('perl -e "{{x}}"', 'system("touch PWNED")'),
    "make variable": ("printf 'all:\\n\\t@echo $(V)\\n' > M; make -f M V=\"{{x}}\"", "$(shell touch PWNED)"),
    "make --eval": ('make --eval="{{x}}"', "$(shell touch PWNED)"),
    "make recipe": ("printf 'all:\\n\\t@echo $(V)\\n' > M; make -f M V=\"{{x}}\"", "; touch PWNED"),
    "declare -i": ('declare -i n; read n <<< "{{x}}"; echo $n', INDEX),
    "read into an index": ('read "a[{{x}}]" <<< 1', "$(touch PWNED)"),
    "sqlite3": ("sqlite3 db \"select '{{x}}'\"", "'; select writefile('PWNED','x'); --"),
    "sqlite3 shell": ('sqlite3 db "{{x}}"', ".shell touch PWNED"),
    "inner arithmetic": ("bash -c 'echo $(( $1 ))' _ \"{{x}}\"", INDEX),
    "exported arithmetic": ("export l=\"{{x}}\"; bash -c 'echo $((l))'", INDEX),
    "arithmetic": ('x="{{x}}"; echo $((x))', INDEX),
    "let": ('let "n={{x}}"', INDEX),
    "test -v": ('test -v "{{x}}"', INDEX),
    "[[ -eq ]]": ('x="{{x}}"; [[ x -eq 0 ]]', INDEX),
    "printf -v": ('printf -v "{{x}}" %s 1', INDEX),
    "unset": ('unset "{{x}}"', INDEX),
    "nameref": ('declare -n r="{{x}}"; echo "$r"', INDEX),
    "indirect": ('v="{{x}}"; echo "${!v}"', INDEX),
    "prompt expansion": ('v="{{x}}"; echo "${v@P}"', "$(touch PWNED)"),
    "source stdin": ('. /dev/stdin <<< "{{x}}"', RUN),
    "$0": ("bash -c '$0' \"{{x}}\"", RUN),
    "inner eval": ('bash -c \'eval "$1"\' _ "{{x}}"', RUN),
    "here string": ('bash <<< "{{x}}"', RUN),
    "pipe to a shell": ('echo "{{x}}" | sh', RUN),
    "xargs sh -c": ('echo "{{x}}" | xargs -I% sh -c %', RUN),
    "written and run": ('echo "{{x}}" > s.sh; bash s.sh', RUN),
    "written and sourced": ('cat > s.sh <<< "{{x}}"; . ./s.sh', RUN),
    "trap": ('trap "{{x}}" EXIT', RUN),
    "alias": ('shopt -s expand_aliases; alias q="{{x}}"\nq', RUN),
    "PROMPT_COMMAND": ('PS4="{{x}}"; set -x; true', "$(touch PWNED)"),
    "BASH_ENV": ('echo "touch PWNED" > e; BASH_ENV="{{x}}" bash -c true', "e"),
    "tar -I": ('touch f; tar -I "{{x}}" -cf x.tar f', "sh -c 'touch PWNED'"),
    "tar checkpoint": ('tar --checkpoint=1 --checkpoint-action="{{x}}" -cf /dev/null .', "exec=touch PWNED"),
    "tar to-command": ('touch f; tar cf t f; tar --to-command="{{x}}" -xf t', RUN),
    "split --filter": ('echo a > f; split --filter="{{x}}" f', RUN),
    "sort compress": ('seq 9000 | sort -S 1k --compress-program="{{x}}" >/dev/null', "./evil"),
    "git -c": ('git init -q r; git -C r -c "{{x}}" status', "core.fsmonitor=touch ../PWNED; false"),
    "git grep -O": ('git init -q r; cd r; echo one > f; git add f; git grep -O"{{x}}" one', "touch ../PWNED; true"),
    "git clone -u": ('git init -q r; git clone -q -u "{{x}}" ./r c', "touch PWNED;true"),
    "git ext": ('git -c protocol.ext.allow=always clone -q "{{x}}" c', "ext::sh -c touch% PWNED"),
    "gcc -wrapper": ('echo "int x;" > a.c; gcc -wrapper "{{x}}" -c a.c', "touch,PWNED"),
    "wget askpass": ('wget --use-askpass="{{x}}" http://u@127.0.0.1:9/', "./evil"),
    "ssh option": ('ssh -o "{{x}}" -o BatchMode=yes host.invalid', "ProxyCommand=touch PWNED"),
    "awk -v system": ("awk -v v=\"{{x}}\" 'BEGIN{system(v)}'", RUN),
    "awk -v pipe": ("awk -v v=\"{{x}}\" 'BEGIN{v | getline}'", RUN),
    "awk program": ('awk "{{x}}" /dev/null', 'BEGIN{system("touch PWNED")}'),
    "awk text": ("echo a | awk '{ print \"{{x}}\" }'", '"; system("touch PWNED"); "'),
    "awk ENVIRON": ('v="{{x}}" awk \'BEGIN{system(ENVIRON["v"])}\'', RUN),
    "sed": ('echo a | sed "{{x}}"', "1e touch PWNED"),
    "sed replacement": ('echo one | sed -e "s/{{x}}/b/"', "one/touch PWNED/e;s/q"),
    "python -c": ("python3 -c \"print('{{x}}')\"", "'+str(__import__('os').system('touch PWNED'))+'"),
    "node -e": ("node -e \"console.log('{{x}}')\"", "'+require('child_process').execSync('touch PWNED')+'"),
    "env -S": ('env -S "{{x}}"', RUN),
    "find -exec": ('touch f; find . -name f -exec "{{x}}" ";"', "./evil"),
    "timeout": ('timeout 3 "{{x}}"', "./evil"),
    "ed": ('ed -s <<< "{{x}}"', "!touch PWNED"),
    "vim -c": ('vim -es -c "{{x}}" -c q', "!touch PWNED"),
    "gdb -ex": ('gdb -nx -batch -ex "{{x}}"', "shell touch PWNED"),
    "zip -TT": ('touch f; zip -q z.zip f -T -TT "{{x}}"', "touch PWNED; true"),
    "man -P": ('man -P "{{x}}" ls', RUN),
    "LD_PRELOAD": ('LD_PRELOAD="{{x}}" cat /dev/null', "./evil.so"),
    "exec": ('exec "{{x}}"', "./evil"),
    "command": ('command "{{x}}"', "./evil"),
    "coproc": ('coproc "{{x}}"; wait', "./evil"),
    "mapfile -C": ('mapfile -C "{{x}}" -c 1 v <<< a', "touch PWNED;"),
    "complete -C": ('complete -C "{{x}}" q; compgen -C "{{x}}" q', RUN),
}
EVIL = "#!/bin/sh\ntouch PWNED\n"


@probe("M1", f"{len(EVALUATORS)} programs that evaluate a value", fast=False)
async def evaluators(testbed: Testbed) -> Verdict:
    """One file for each tool, so that one refused takes no other along."""
    folder = testbed.top / "tools"
    folder.mkdir()
    for number, (script, _) in enumerate(EVALUATORS.values()):
        tool = {
            "script": script,
            "danger": "low",
            "parameters": [{"name": "x", "type": "string", "required": True}],
            "sandbox": {"max_processes": 50, "timeout": 8},
        }
        (folder / f"{number}.yaml").write_text(json.dumps({"tools": {f"tool_{number}": tool}}))
    testbed.configure(tool_files=tuple(str(path) for path in sorted(folder.iterdir())))
    (testbed.work / "evil").write_text(EVIL)
    (testbed.work / "evil").chmod(0o755)
    triggered: list[str] = []
    refused = 0
    for number, (name, (_, payload)) in enumerate(EVALUATORS.items()):
        result = await testbed.call(f"tool_{number}", x=payload)
        refused += "NOT_FOUND" in result.error
        marker = testbed.work / "PWNED"
        if marker.exists():
            triggered.append(name)
            marker.unlink()
    breach = [f"{len(triggered)} of {len(EVALUATORS)} ran it: {', '.join(triggered)}"] if triggered else []
    return judge(breach, f"{refused} refused at load, {len(EVALUATORS) - refused} harmless")


@probe("new", "values: arguments of one call do not stay for the next", fast=False)
async def stays(testbed: Testbed) -> Verdict:
    path = testbed.top / "t.yaml"
    tool = {
        "script": 'echo "{{x}}" > /tmp/kept; env | grep -c CANARY',
        "parameters": [{"name": "x", "type": "string", "required": True}],
    }
    look = {
        "script": (
            "cat /tmp/kept /dev/shm/* 2>/dev/null; cat /proc/*/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"
        )
    }
    path.write_text(json.dumps({"tools": {"keep": tool, "look": look}}))
    testbed.configure(tool_files=(str(path),))
    await testbed.call("keep", x="SECRET-ARGUMENT")
    outcome = await testbed.call("look")
    return judge(["a later call reads it"] if "SECRET-ARGUMENT" in outcome.stdout else [])
