"""Which tool does a name mean? One canonical name for each; every other spelling is turned into it here.

`server__tool` is a tool of an upstream server, `mcp__server__tool` the same spelled out; tools of the builtin server
go by their bare names.
"""

BUILTIN_SERVER = "toolreeve_builtin"

ALIASES = {
    "bash_command": "bash",
    "shell": "bash",
    "fs/read_text_file": "read_file",
    "fs/write_text_file": "write_file",
}


def canonical(name: str) -> str:
    """A pure function of the name; says nothing about whether such a tool exists."""
    if name.startswith("mcp__"):
        name = name[5:]
    if name.startswith(BUILTIN_SERVER + "__"):
        name = name[len(BUILTIN_SERVER) + 2 :]
    return ALIASES.get(name, name)


def server_of(name: str) -> str | None:
    """The server part of a spelled-out name: the text between `mcp__` and the next `__`."""
    if not name.startswith("mcp__"):
        return None
    server, separator, tool = name[5:].partition("__")
    return server if separator and server and tool else None
