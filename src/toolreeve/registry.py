"""Tool registry: every tool under one canonical name, found in constant time.

A duplicate name is an error that names both sources: nothing is ever silently replaced.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.names import canonical
from toolreeve.core.suggest import did_you_mean, find_similar
from toolreeve.core.tool import BoundTool, bind, tool

Tools = list[BoundTool]
Names = list[str]
_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}$")
_WORD = re.compile(r"[a-z0-9]+")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ies|ed|es|s|e|y)$")
_FILLERS = frozenset("a an the of in to for and or with my all some from on by is it that this".split())


class ToolRegistry:
    """`version` grows with every change, so that the holder of a derived list knows when it is stale."""

    def __init__(self, tools: Iterable[Any] = ()) -> None:
        self._tools: dict[str, BoundTool] = {}
        self._watchers: list[Callable[[], None]] = []
        self.version = 0
        for candidate in tools:
            self.register(candidate)

    def __repr__(self) -> str:
        return f"<ToolRegistry: {len(self)} tools>"

    def register(
        self,
        candidate: Any,
        function: Callable[..., Any] | None = None,
        description: str | None = None,
        category: str = "custom",
        parameters: Mapping[str, Any] | None = None,
    ) -> BoundTool:
        """Add a tool: any accepted kind, or given as name, function, description, category and parameters."""
        if isinstance(candidate, str):
            if function is None:
                raise ToolreeveError(f"register({candidate!r}): a name needs a function, or pass the tool itself")
            candidate = _spelled_out(candidate, function, description, category, parameters)
        bound = bind(candidate)
        name = bound.spec.name
        if not isinstance(name, str) or not _NAME.match(name):
            raise ToolreeveError(
                f"{bound.spec.source}: {name!r} is not a tool name; use letters, digits, `_`, `-`, `.`, `/`"
            )
        if canonical(name) != name:
            raise ToolreeveError(f"{bound.spec.source}: {name!r} is another spelling of {canonical(name)!r}")
        if (other := self._tools.get(name)) is not None:
            raise ToolreeveError(
                f"two tools are called {name!r}: {other.spec.source} and {bound.spec.source}; rename one"
            )
        self._tools[name] = bound
        self._changed()
        return bound

    def unregister(self, name: str) -> None:
        """Remove a tool. Raises ToolreeveError for an unknown one."""
        if self._tools.pop(canonical(name), None) is None:
            raise ToolreeveError(_unknown(name, self._similar(name)))
        self._changed()

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call `watcher` after each change; call the returned function to stop."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def _changed(self) -> None:
        self.version += 1
        for watcher in self._watchers:
            watcher()

    def resolve(self, name: str, *, hidden: bool = False) -> BoundTool:
        """The tool of that name. `hidden` tools are found only by doors. Raises ToolError(TOOL_NOT_FOUND) that suggests
        the nearest names."""
        found = self.get(name) if isinstance(name, str) else None
        if found is None or (found.spec.hidden and not hidden):
            similar = self._similar(str(name))
            raise ToolError(ErrorCode.TOOL_NOT_FOUND, _unknown(name, similar), suggestions=similar)
        return found

    def get(self, name: str) -> BoundTool | None:
        """The tool of that name or alias, hidden or not; None for no such tool."""
        return self._tools.get(name) or self._tools.get(canonical(name))

    def list(self) -> Tools:
        """The tools that doors show, by name."""
        shown = (each for each in self._tools.values() if not each.spec.hidden)
        return sorted(shown, key=lambda each: each.spec.name)

    def list_by_category(self, category: str) -> Tools:
        """The tools of one category, by name."""
        return [each for each in self.list() if each.spec.category == category]

    @property
    def categories(self) -> Names:
        """The categories that have tools."""
        return sorted({each.spec.category for each in self._tools.values()})

    def get_categories(self) -> Names:
        """The same as `categories`."""
        return self.categories

    def search(self, query: str, *, limit: int = 20) -> Tools:
        """Tools that match the query, the best first."""
        words = _words(query)
        tools = self.list()
        texts = [_words(f"{each.spec.name} {each.spec.description}".replace("_", " ")) for each in tools]
        weights = {word: 1 / (1 + sum(word in text for text in texts)) for word in words}
        scored = [(_score(words, each, weights), each) for each in tools]
        return [each for score, each in sorted(scored, key=lambda pair: -pair[0]) if score > 0][:limit]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[BoundTool]:
        return iter(self.list())

    def __len__(self) -> int:
        return len(self._tools)

    def _similar(self, name: str) -> Names:
        shown = [each for each, bound in self._tools.items() if not bound.spec.hidden]
        return find_similar(canonical(name), shown)


def _unknown(name: str, similar: list[str]) -> str:
    hint = f" ({did_you_mean(similar[:1])})" if similar else ""
    return f"no tool is called {name!r:.200}{hint}"


def _words(text: str) -> set[str]:
    """The words of a text, without the endings that make `files`, `searching` and `deleted` other words."""
    return {_ENDING.sub("", word) for word in _WORD.findall(text.lower())} - _FILLERS


def _score(words: set[str], candidate: BoundTool, weights: Mapping[str, float]) -> float:
    """How well a tool fits the words: those of its name count most, rare ones more than common ones."""
    spec = candidate.spec
    name = _words(spec.name.replace("_", " "))
    labels = _words(" ".join((spec.category, *spec.tags, spec.server or "", spec.title)))
    text = _words(spec.description)
    parameters = _words(" ".join(spec.input.get("properties", ())))
    return sum(
        weights[word] * (8 * (word in name) + 4 * (word in labels) + 3 * (word in text) + (word in parameters))
        for word in words
    )


def _spelled_out(
    name: str,
    function: Callable[..., Any],
    description: str | None,
    category: str,
    parameters: Mapping[str, Any] | None,
) -> Any:
    made = tool(name=name, description=description, category=category)(function)
    for parameter, note in (parameters or {}).items():
        if parameter not in made.signature.schema["properties"]:
            raise ToolreeveError(f"register({name!r}): the function has no parameter {parameter!r}")
        made.signature.schema["properties"][parameter].setdefault("description", str(note))
    return made
