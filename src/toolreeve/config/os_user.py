"""The user of this process, as the operating system names them."""

import getpass
import os


def os_user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in containers
        return f"user {os.getuid()}"
