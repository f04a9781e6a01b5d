"""The prediction against the kernel: commands run under strace do nothing that was not predicted."""

from pathlib import Path

import pytest
from bench.shell_truth import observe, scratch, unpredicted

from toolreeve.policy.shell.analysis import analyse

COMMANDS = [
    "ls -la",
    "cat file.txt | sort | uniq -c",
    "find . -name '*.txt' -exec wc -l {} +",
    "grep -rn one . | head -3",
    "git log --oneline -1",
    "git diff HEAD",
    "awk '{print $1}' file.txt",
    "sed -n 1,2p file.txt",
    "diff a.txt b.txt",
    "comm -12 <(sort a.txt) <(sort b.txt)",
    'for f in *.txt; do wc -l -- "$f"; done',
    "find . -type f -print0 | xargs -0 grep -l one",
    "du -sh . && df -h .",
    "cut -c1-3 file.txt > /dev/null",
    "touch new.txt",
    "echo x > out.txt",
    "cp file.txt copy.txt",
    "mv a.txt moved.txt",
    "mkdir -p deep/er",
    "rm b.txt",
    "rm -r dir",
    "ln -s file.txt link",
    "sed -i 's/one/1/' file.txt",
    "sort -o sorted.txt file.txt",
    "tee one two < file.txt",
    "find . -name '*.log' -delete",
    "cd src && touch here",
    "tar cf all.tar src",
    "tar cf x.tar src && tar xf x.tar -C dir",
    "gzip file.txt",
    "split -l 1 file.txt part",
    "dd if=file.txt of=dd.out",
    "truncate -s 0 file.txt",
    "chmod 600 file.txt",
    "env LC_ALL=C timeout 5 nice touch nested",
    "bash -c 'echo y > inner.txt'",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_known_command_does_only_what_was_predicted(command: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    root = scratch(tmp_path / "work")
    analysis = analyse(command, cwd=str(root), home=str(tmp_path / "home"), root=str(root))
    assert analysis.known, analysis.reason

    seen = observe(command, root, seconds=60)

    assert seen is not None
    assert unpredicted(analysis, seen) == []
