"""The [trial] table: commands that run first and are decided afterwards."""

from dataclasses import dataclass
from typing import Annotated, Literal

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Running commands over a layer instead of asking beforehand."""

    use: Annotated[
        Literal["ask", "unchanged", "off"],
        Field(
            "What happens to commands that the mode would ask about and that can run on trial. ask: they run over a "
            "layer, and a person is asked whether to keep what they changed. unchanged: what they changed is "
            "discarded, and they are asked about as if they had not run. off: nothing runs on trial.",
            ProjectScope.STRICTER,
        ),
    ] = "ask"
    layer_mb: Annotated[
        int,
        Field("Memory in MB for everything that a trial changes.", ProjectScope.LOWER, at_least=1),
    ] = 256
    seconds: Annotated[
        float,
        Field("Seconds that a command may run on trial.", ProjectScope.LOWER, above=0),
    ] = 120.0
    warm: Annotated[
        int,
        Field("Sandboxes for trials that are prepared ahead, once one was used.", ProjectScope.LOWER, at_least=0),
    ] = 2
    scratch: Annotated[
        tuple[str, ...],
        Field(
            "Further names of files and folders that a trial may leave and that are always discarded, besides the "
            "caches of common tools and what git ignores. `*` and `?` match within a name.",
            ProjectScope.NEVER,
        ),
    ] = ()
