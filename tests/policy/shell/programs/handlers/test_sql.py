"""SQL that is given to a client: what only computes is known, what calls functions of its own is not."""

import pytest

from tests.policy.shell.workspace import analysed, runs_unasked

CALLS = [
    "select delete_everything()",
    "select drop_all ( )",
    'select "delete_everything"()',
    "select `drop_all`()",
    "select public.count(1)",
    "select public . count (1)",
    "select drop_all/**/()",
    "select drop_all -- count\n()",
    "select drop_all # count\n()",
    "select count(*), coalesce(drop_all(), 1) from x",
    "select * from x where drop_all() > 1",
    "values (drop_all())",
    "select pg_sleep(1)",
    "select [drop_all]()",
]


@pytest.mark.parametrize("statement", CALLS)
@pytest.mark.parametrize("client", ["psql -c", "mysql -e", "sqlite3 -safe x.db"])
def test_a_statement_that_calls_a_function_of_its_own_is_not_known(client: str, statement: str) -> None:
    quoted = statement.replace("'", "'\\''")

    assert not analysed(f"{client} '{quoted}'").known


QUERIES = [
    "select count(*) from x",
    "select lower(name), round(avg(price), 2) from x group by name",
    "select * from x where id in (1, 2) and (a > 1 or b < 2)",
    "select coalesce(max(day), current_date) from (select day from x) y",
    "select row_number() over (partition by a order by b) from x",
    "select cast(a as decimal(10, 2)), (a + b) * (c - d) from x",
    "select json_extract(a, b) from x where not exists (select 1 from y)",
    "explain select 1",
]


@pytest.mark.parametrize("statement", QUERIES)
@pytest.mark.parametrize("client", ["psql -c", "mysql -e", "sqlite3 -safe x.db"])
def test_a_statement_that_only_computes_runs_unasked(client: str, statement: str) -> None:
    assert runs_unasked(f"{client} '{statement}'"), analysed(f"{client} '{statement}'").reason
