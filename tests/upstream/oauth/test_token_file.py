"""The file of tokens: one for each server, and no name leads out of its folder."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from toolreeve.upstream.oauth.token_file import FOLDER, TokenFile

NAMES = st.text(min_size=1, max_size=80)


@given(NAMES)
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    path = TokenFile(Path("/state"), server=name, url="https://a.example/").path

    assert path.parent == Path("/state") / FOLDER
    assert path.name.isascii()
    assert not path.name.startswith(".")
    assert len(path.name) < 80


@given(NAMES, NAMES)
def test_two_servers_never_share_a_file(one: str, other: str) -> None:
    paths = {TokenFile(Path("/state"), server=name, url="u").path.name.lower() for name in (one, other)}

    assert len(paths) == len({one, other})


def test_what_is_kept_is_read_again_at_the_same_place_only() -> None:
    with tempfile.TemporaryDirectory() as state:
        file = TokenFile(Path(state), server="a", url="https://a.example/mcp")
        file.update(tokens={"access_token": "x"})
        file.update(issuer="https://i.example")

        again = TokenFile(Path(state), server="a", url="https://a.example/mcp")
        assert again.read() == {
            "tokens": {"access_token": "x"},
            "issuer": "https://i.example",
            "url": "https://a.example/mcp",
        }
        assert TokenFile(Path(state), server="a", url="https://b.example/mcp").read() == {}
        assert list((Path(state) / FOLDER).iterdir()) == [file.path]
