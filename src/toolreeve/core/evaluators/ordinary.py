"""Ordinary programs, and defaults for those not listed. Pure data."""

from toolreeve.core.evaluators.names import words

OPTION_NAMES = (
    r"(?:.*-)?(?:exec|execute|eval|evaluate|command|cmd|run|shell|rsh|ssh|script|hook|pager|editor|askpass|wrapper|program|prog"
    r"|plugin|interpreter|preprocessor|pipe|expr|expression|code|preload|rcfile|browser|launcher)"
    r"(?:-(?:command|program|file|path|line|string|args|cmd))?"
)
"""Names of long options with which a program that is not known is taken to run something."""

CODE_LETTERS = frozenset({"-c", "-e", "-x"})
"""Short options behind which a program that is not known is taken to expect code."""

DATA = words(
    """
    : [ ab apropos arp b2sum base32 base64 basename basenc bc blkid break bunzip2 bzcat bzip2 cal
    cat cd chattr chgrp chmod chown cksum clear cmp colordiff column comm continue cp crc32 csplit
    cut date df diff dig dir dirname dirs dos2unix du echo egrep exit expand expr factor false
    ffprobe fgrep figlet file fmt fold free getent getfacl getfattr getopt grep groups gunzip gzip hd head
    hexdump hey host hostname html2text iconv id ifconfig jo join jp kill link ln locale
    locate logger look ls lsattr lsblk lscpu lsof lz4 mcookie md5sum mediainfo mkdir mkfifo mktemp mv ncal
    netstat nl notify-send nproc nslookup numfmt od paste pdfinfo pdftotext pgrep pidof ping ping6 popd pr
    printenv printf ps pushd pwd readlink realpath reset return rev rm rmdir route seq setfacl setfattr
    sha1sum sha224sum sha256sum sha384sum sha3sum sha512sum shift shred shuf sleep sponge ss stat strings stty
    sum sync tac tail tee test tidy top touch tput tr tracepath traceroute tree true truncate tsort tty type
    umask uname unexpand uniq units unix2dos unlink unxz unzstd uptime uuidgen vdir w wc wcalc wdiff whatis
    whereis which who whoami whois xmllint xxd xz xzcat yes zcat zgrep zstd zstdcat
    """
)
"""Programs for which every word is data, whatever it says."""
