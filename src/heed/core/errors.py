"""Errors that users read, each with the exit code of a command that ends with it.

Every message says what was received, what is allowed and what to do, on one screen. The command line prints the
message without a traceback (`--debug` shows it) and exits with `exit_code`.
"""

from __future__ import annotations


class HeedError(Exception):
    """The work failed. Exit code 1."""

    exit_code = 1


class UsageError(HeedError):
    """The call or the recipe is wrong. Exit code 2."""

    exit_code = 2


class DataError(HeedError):
    """The data is wrong: bad encoding, files of different length, a broken line. Exit code 65."""

    exit_code = 65


class MissingInputError(HeedError):
    """An input file or folder does not exist or cannot be read. Exit code 66."""

    exit_code = 66


class StorageError(HeedError):
    """Input or output failed: disk full, no permission to write. Exit code 74."""

    exit_code = 74
