"""Which pieces of text are plain? Expressions for what words are made of most, every quote in them closed again."""

import re

TEXT, FILLED = "\x01", "\x02"
"""Stand for a heredoc that was taken out, of fixed text or with variables in it; no command that is read has them."""

BARE = r"A-Za-z0-9_./:=,@%+\-^"
FIXED = r"""'[^']*+'|"[^"$`\\!]*+\""""
QUOTED = re.compile(FIXED)
INSIDE = rf"(?:[A-Za-z0-9_./:=,+\- \t|;&<>*?]++|\$(?=\w)|{FIXED})*+"
EXPANSION = rf"\$[A-Za-z_]\w*+|\$\{{[A-Za-z_]\w*+\}}|\$\({INSIDE}\)"
PIECE = (
    rf"""[{BARE}*?]++|'[^']*+'|"(?:[^"$`\\!]++|{EXPANSION})*+"|{EXPANSION}"""
    r"|\[[A-Za-z0-9_.^-]++\]|\{[A-Za-z0-9_/,-]*+\}|~(?=/)"
)
ALONE = rf"[<>]\({INSIDE}\)|\\[();!]|{TEXT}|{FILLED}"
