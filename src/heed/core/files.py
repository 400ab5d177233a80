"""How are files written so that they are whole or not there at all, and what is said when they cannot be?

Written is a temporary file beside the target, flushed to the device, then renamed over the target: a reader, a
second process and a power cut find the old file or the new one. Only a process killed outright leaves debris,
under a name that begins with `.heed-`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, TextIO, overload

from heed.core.errors import HeedError, StorageError


@overload
def atomic_write(path: str | Path, mode: Literal["wb"] = "wb") -> AbstractContextManager[IO[bytes]]: ...
@overload
def atomic_write(path: str | Path, mode: Literal["w"]) -> AbstractContextManager[TextIO]: ...
def atomic_write(path: str | Path, mode: Literal["wb", "w"] = "wb") -> AbstractContextManager[Any]:
    """A file to write into; it takes the place of `path` when the with-block ends, and not if it raises.

    Text is UTF-8 with line feeds. A link is followed, the permissions of a file that is replaced are kept.
    Raises StorageError when `path` is a folder or a device, and OSError as writing does (see `storage_errors`).
    """
    return _atomic_write(Path(path), mode)


@contextmanager
def _atomic_write(path: Path, mode: str) -> Iterator[Any]:
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise StorageError(f"cannot write {path}: it is no regular file. Choose another name.")
    temporary = _beside(target)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with temporary.open(mode.replace("w", "x"), **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
        _flush_folder(target.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        _name_file(error, path)
        raise


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """An empty folder to write into; it gets the name `path` when the with-block ends, and goes if it raises.

    Raises StorageError when `path` exists (it replaces nothing), and OSError as writing does.
    """
    target = Path(path).absolute()
    _refuse_existing(target)
    temporary = _beside(target)
    try:
        temporary.mkdir()
        yield temporary
        _flush_tree(temporary)
        _refuse_existing(target)  # a rename would silently replace an empty folder
        temporary.rename(target)
        _flush_folder(target.parent)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        _name_file(error, target)
        raise


def _beside(target: Path) -> Path:
    """A new hidden name in the same folder, so that renaming moves no data; short, as names have a longest length."""
    return target.with_name(f".heed-{secrets.token_hex(6)}.tmp")


def _refuse_existing(target: Path) -> None:
    if os.path.lexists(target):
        raise StorageError(f"cannot create {target}: it exists already. Choose another name, or remove it first.")


def _flush_tree(folder: Path) -> None:
    for parent, _, names in os.walk(folder):
        for name in names:
            with (Path(parent) / name).open("rb") as file:
                os.fsync(file.fileno())
        _flush_folder(Path(parent))


def _flush_folder(folder: Path) -> None:
    """Make the names in a folder durable; some network file systems cannot, and then there is nothing to do."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _name_file(error: BaseException, path: Path) -> None:
    """A failed write names no file, a failed open does; say it in both cases."""
    if isinstance(error, OSError) and error.errno in _REASONS and error.filename is None:
        error.filename = str(path)


def sha256_file(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def free_bytes(path: str | Path) -> int:
    """The bytes this user may still write on the device that holds `path`, or would hold it once it exists."""
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def format_bytes(number: float) -> str:
    """A size as people read it: `31 MB`, `1.2 GB`; units of 1,000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.0f} {unit}" if number >= 10 or unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


_INCOMPLETE = -1  # torch.save to a path: it knows only that fewer bytes arrived than it wrote

_REASONS = {
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than is allowed here",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "a part of its path is no folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EIO: "the device reports an input/output error",
    _INCOMPLETE: "the file could not be written completely",
}

_ABOUT_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, _INCOMPLETE)


@contextmanager
def storage_errors(doing: str, needed: int | None = None, path: str | Path | None = None) -> Iterator[None]:
    """Turn the failures of writing into one StorageError that says what to do.

    `doing` names the work ("write the checkpoint"), `needed` its size in bytes, `path` the place when the error
    itself may not know it. Recognised are OSError and what torch, safetensors and tokenizers raise instead.
    Every other error passes through.
    """
    try:
        yield
    except HeedError:
        raise
    except Exception as error:
        code, filename = _failure(error)
        if code not in _REASONS:
            raise
        raise StorageError(_explain(doing, code, needed, filename or path)) from error


def _failure(error: BaseException) -> tuple[int | None, str | None]:
    """The error number and the file's name, as far as they are known."""
    if isinstance(error, OSError):
        return error.errno, error.filename
    rust = re.search(r"\(os error (\d+)\)", str(error))  # safetensors and tokenizers
    if rust:
        return int(rust[1]), None
    if isinstance(error, RuntimeError) and re.search(
        r"PytorchStreamWriter|inline_container.*unexpected pos", str(error)
    ):
        cause = error.__context__
        return (cause.errno, cause.filename) if isinstance(cause, OSError) else (_INCOMPLETE, None)
    return (errno.ENOSPC, None) if "No space left" in str(error) else (None, None)


def _explain(doing: str, code: int, needed: int | None, path: str | Path | None) -> str:
    facts = f" at {path}" if path else ""
    advice = "Choose another --out."
    if code in _ABOUT_SPACE:
        parts = [f"needs {format_bytes(needed)}"] if needed is not None else []
        parts += [f"{format_bytes(free_bytes(path))} free at {path}"] if path else []
        facts = f" ({', '.join(parts)})" if parts else ""
        advice = "Free some space or choose another --out."
    return f"cannot {doing}: {_REASONS[code]}{facts}. {advice}"
