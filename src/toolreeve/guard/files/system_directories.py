"""System directories: refused to every tool, unless a root lies there.

Pure. Files that hold secrets or that the host obeys are listed in `core`, because commands need the same tables.
"""

SYSTEM = ("/etc", "/root", "/proc", "/sys", "/dev", "/boot", "/run", "/var/run")


def find_system(path: str, root: str) -> str | None:
    """Why an absolute path belongs to the system, or None. A root inside such a directory lifts the refusal."""
    for directory in SYSTEM:
        if (path == directory or path.startswith(f"{directory}/")) and not (
            root == directory or root.startswith(f"{directory}/")
        ):
            return f"{directory} belongs to the system"
    return None
