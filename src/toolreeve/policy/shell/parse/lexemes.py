"""Regular expressions for plain pieces of words, every quote closed."""

import re

TEXT = "\x01"
FILLED = "\x02"
RUNNING = "\x03"
"""Placeholders for a removed heredoc: of fixed text, with variables in it, or with more that bash expands. Commands
that contain these characters are refused."""

BARE = r"A-Za-z0-9_./:=,@%+\-^"
FIXED = r"""'[^']*+'|"[^"$`\\!]*+\""""
QUOTED = re.compile(FIXED)
INSIDE = rf"(?:[A-Za-z0-9_./:=,+\- \t|;&<>*?]++|\$(?=\w)|{FIXED})*+"
EXPANSION = rf"\$[A-Za-z_]\w*+|\$\{{[A-Za-z_]\w*+\}}|\$\({INSIDE}\)"
PIECE = (
    rf"""[{BARE}*?]++|'[^']*+'|"(?:[^"$`\\!]++|{EXPANSION})*+"|{EXPANSION}"""
    r"|\[[A-Za-z0-9_.^-]++\]|\{[A-Za-z0-9_/,-]*+\}|~(?=/)"
)
ALONE = rf"[<>]\({INSIDE}\)|\\[();!]|{TEXT}|{FILLED}|{RUNNING}"
