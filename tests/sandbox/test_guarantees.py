"""Guarantees that `doctor` shows, for each kind of machine; other tests attack them."""

import pytest

from toolreeve.sandbox.guarantees import Support, guarantees

BEST = Support(
    namespaces=True,
    seccomp=True,
    cgroups=True,
    own_user=True,
    inotify=True,
    cpu_counter=True,
    swap=False,
    signal_scope=True,
)


def lost(support: Support) -> set[str]:
    return {each.name for each in guarantees(support) if not each.holds}


@pytest.mark.parametrize(
    ("support", "names"),
    [
        (BEST, set()),
        (BEST._replace(own_user=False), set()),
        (BEST._replace(own_user=False, inotify=False), {"inotify"}),
        (
            BEST._replace(cgroups=False, cpu_counter=False, own_user=False),
            {"TCP buffers with network: host", "file locks", "CPU time"},
        ),
        (BEST._replace(cpu_counter=False), {"CPU time"}),
        (BEST._replace(swap=True), {"swap"}),
        (
            BEST._replace(namespaces=False, own_user=False, signal_scope=False),
            {"inotify", "temporary files", "signals to processes outside"},
        ),
        (BEST._replace(namespaces=False, own_user=False), {"inotify", "temporary files"}),
        (BEST._replace(seccomp=False), {"keys, AIO, mounts, namespaces"}),
    ],
    ids=[
        "root",
        "delegated",
        "read-only /proc/sys",
        "ordinary user",
        "without cpuacct",
        "version 1 with swap",
        "Landlock 5 alone",
        "without namespaces",
        "without seccomp",
    ],
)
def test_guarantees_that_do_not_hold_are_listed(support: Support, names: set[str]) -> None:
    assert lost(support) == names | {"writes to the workspace"}


def test_guarantees_that_do_not_hold_for_an_ordinary_user_have_a_remedy() -> None:
    table = guarantees(BEST._replace(cgroups=False, cpu_counter=False, own_user=False))

    assert all(each.remedy for each in table if not each.holds)
