"""Kernel mechanisms: mounts, namespaces, Landlock, seccomp, cgroups, inotify."""
