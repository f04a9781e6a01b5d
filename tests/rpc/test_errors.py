from toolreeve.core.errors import TRAITS
from toolreeve.rpc import errors

TABLE = {name: code for name, code in vars(errors).items() if name.isupper()}


def test_no_code_has_two_names() -> None:
    assert len(set(TABLE.values())) == len(TABLE)


def test_every_error_of_ours_has_a_code_of_the_table() -> None:
    used = {traits.jsonrpc for traits in TRAITS.values()}

    assert used <= set(TABLE.values())
