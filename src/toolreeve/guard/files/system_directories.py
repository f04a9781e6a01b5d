"""System directories: refused even to an allowed tool, unless a root lies in them.

Pure. What holds secrets or is obeyed by the host is in `core`, for commands need the same tables.
"""

SYSTEM = ("/etc", "/root", "/proc", "/sys", "/dev", "/boot", "/run", "/var/run")


def find_system(path: str, root: str) -> str | None:
    """Why an absolute path belongs to the system, or None. A root that lies inside such a place names it."""
    for place in SYSTEM:
        if (path == place or path.startswith(f"{place}/")) and not (root == place or root.startswith(f"{place}/")):
            return f"{place} belongs to the system"
    return None
