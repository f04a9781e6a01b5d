"""How is a server reached? Over the pipes of a process, over HTTP, or over a stream of events."""
