"""Tool names: one canonical name per tool, and the aliases of it.

`server__tool` is a tool of an upstream server, `mcp__server__tool` its long form; tools of the builtin server have bare
names.
"""

BUILTIN_SERVER = "toolreeve_builtin"

ALIASES = {
    "bash_command": "bash",
    "shell": "bash",
    "fs/read_text_file": "read_file",
    "fs/write_text_file": "write_file",
}


def canonical(name: str) -> str:
    """A pure function of the name; whether such a tool exists is another question."""
    if name.startswith("mcp__"):
        name = name[5:]
    if name.startswith(BUILTIN_SERVER + "__"):
        name = name[len(BUILTIN_SERVER) + 2 :]
    return ALIASES.get(name, name)


def server_of(name: str) -> str | None:
    """The server part of a long name: the text between `mcp__` and the next `__`."""
    if not name.startswith("mcp__"):
        return None
    server, separator, tool = name[5:].partition("__")
    return server if separator and server and tool else None
