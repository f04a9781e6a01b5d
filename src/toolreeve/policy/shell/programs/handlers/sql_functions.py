"""SQL functions that are known to be pure.

Any other function may do anything. A name counts as called wherever an opening parenthesis follows it, even inside
quotes: rather ask than miss.
"""

import re

_PIECE = re.compile(r"[\w$]+|\s+|.", re.DOTALL)
_COMMENT = re.compile(r"/\*|--|#")
_OPERATORS = frozenset("(,+-*/%<>=|!~&^")
_PURE = frozenset(
    # aggregates and windows
    "count sum min max avg total group_concat string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg "
    "bool_and bool_or every stddev stddev_pop stddev_samp variance var_pop var_samp median mode percentile_cont "
    "percentile_disc corr approx_count_distinct row_number rank dense_rank percent_rank cume_dist ntile lag lead "
    "first_value last_value nth_value "
    # values
    "coalesce ifnull nullif isnull nvl iif if greatest least cast convert try_cast typeof pg_typeof quote "
    # text
    "lower upper length len char_length character_length octet_length bit_length substr substring mid left right trim "
    "ltrim rtrim btrim lpad rpad concat concat_ws position strpos instr locate charindex reverse repeat initcap "
    "split_part substring_index regexp_matches regexp_match regexp_substr regexp_like regexp_count regexp_instr "
    "starts_with ascii unicode hex to_hex md5 sha1 sha2 format printf soundex field find_in_set elt to_char to_number "
    "translate string_to_array array_to_string "
    # numbers
    "round abs ceil ceiling floor mod power pow sqrt exp ln log log10 log2 sign trunc truncate random rand pi sin cos "
    "tan asin acos atan atan2 degrees radians div width_bucket generate_series unnest "
    # dates and times
    "now date time datetime timestamp timestampdiff timestampadd julianday unixepoch strftime date_trunc date_part "
    "date_format date_add date_sub datediff dateadd datepart datename adddate subdate curdate curtime current_date "
    "current_time current_timestamp localtime localtimestamp getdate sysdate extract age make_date make_interval "
    "make_timestamp to_date to_timestamp from_unixtime unix_timestamp year quarter month week day dayname dayofmonth "
    "dayofweek dayofyear hour minute second monthname weekday last_day str_to_date timediff clock_timestamp "
    # readers of JSON and arrays
    "json json_extract json_value json_query json_type json_valid json_array json_array_length json_object json_each "
    "json_each_text json_tree json_keys json_length json_contains json_search json_unquote json_quote json_pretty "
    "json_array_elements json_array_elements_text json_object_keys json_extract_path json_extract_path_text "
    "json_typeof json_build_object json_build_array json_group_array json_group_object jsonb_array_length "
    "jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys jsonb_extract_path "
    "jsonb_extract_path_text jsonb_typeof jsonb_pretty jsonb_build_object jsonb_build_array to_json to_jsonb "
    "row_to_json array_length "
    "cardinality array_position "
    # information about the database itself
    "version sqlite_version database schema user current_user session_user current_database current_schema "
    "connection_id found_rows changes last_insert_rowid pg_size_pretty pg_database_size pg_table_size pg_indexes_size "
    "pg_relation_size pg_total_relation_size pg_postmaster_start_time pg_get_viewdef pg_get_indexdef "
    "pg_get_constraintdef pg_table_is_visible obj_description col_description to_regclass has_table_privilege "
    "pragma_table_info pragma_index_list pragma_index_info pragma_foreign_key_list pragma_table_list".split()
)
_KEYWORDS = frozenset(
    "select from where and or not in exists any all some as on using join lateral over partition by order group having "
    "values union except intersect with recursive materialized when then else case is between like ilike "
    "distinct filter within limit offset fetch interval array row table explain "
    "varchar char character nchar nvarchar decimal numeric float double bit varbinary binary timestamptz "
    "rollup cube".split()
)


def calls_only_pure(statement: str) -> bool:
    """Whether every opening parenthesis follows a pure function, a keyword or an operator."""
    if "(" not in statement:
        return True
    if _COMMENT.search(statement):
        return False
    last = before = ","
    for piece in _PIECE.findall(statement):
        if piece == "(" and not _may_open(last, before):
            return False
        if not piece.isspace():
            before = last
            last = piece
    return True


def _may_open(last: str, before: str) -> bool:
    word = last.lower()
    return last in _OPERATORS or (before != "." and (word in _PURE or word in _KEYWORDS))
