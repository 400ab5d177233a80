"""Atomic files and folders, and errors about storage.

A file is written under a temporary name in the same folder, flushed to the device and renamed to its target: readers,
other processes and a machine that loses power see the old file or the new one. Only a killed process leaves debris,
under a name that starts with `.heed-`. The next `sole_writer` of a run folder removes it, and whoever creates the next
folder by its side removes unfinished folders.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import resource
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, Literal, TextIO, overload

from heed.core.errors import HeedError, StorageError, UsageError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
Around = Callable[[Path], AbstractContextManager[object]]
"""What is done around the replacement of a file, given the path of the whole new one."""


@overload
def atomic_write(
    path: str | Path, mode: Literal["wb"] = "wb", around: Around = nullcontext
) -> AbstractContextManager[IO[bytes]]: ...
@overload
def atomic_write(
    path: str | Path, mode: Literal["w"], around: Around = nullcontext
) -> AbstractContextManager[TextIO]: ...
def atomic_write(
    path: str | Path, mode: Literal["wb", "w"] = "wb", around: Around = nullcontext
) -> AbstractContextManager[Any]:
    """Open a file that replaces `path` when the with-block ends, unless it or `around` raises.

    Text is UTF-8 with line feeds. A link is followed; the permissions of a replaced file are kept.
    Raises StorageError when `path` is a folder or a device, and OSError as writing does (see `storage_errors`).
    """
    return _atomic_write(Path(path), mode, around)


@contextmanager
def _atomic_write(path: Path, mode: str, around: Around) -> Iterator[Any]:
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise StorageError(f"cannot write {path}: it is not a regular file. Choose another name.")
    temporary = _temporary_name(target)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with temporary.open(mode.replace("w", "x"), **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        with around(temporary):
            temporary.replace(target)
            _flush_folder(target.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        _name_file(error, path)
        raise


@contextmanager
def atomic_folder(path: str | Path, parents: bool = False) -> Iterator[Path]:
    """Create an empty folder that is named `path` when the with-block ends, and deleted if it raises.

    `parents`: create the folders around it too, as for a folder that a user names.
    Raises StorageError if `path` exists (nothing is replaced), and OSError as writing does.
    """
    target = Path(path).absolute()
    _refuse_existing(target)
    if parents:
        target.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(target.parent)
    temporary, claim = _temporary_name(target), None
    try:
        while claim is None:
            temporary.mkdir(exist_ok=True)
            claim = _locked(temporary)  # another process may take it for abandoned before that
        yield temporary
        _flush_tree(temporary)
        _refuse_existing(target)  # a rename would silently replace an empty folder
        temporary.rename(target)
        _flush_folder(target.parent)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        _name_file(error, target)
        raise
    finally:
        if claim is not None:
            os.close(claim)


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the lock of a new folder; None if another process has taken it for abandoned."""
    with suppress(FileNotFoundError):
        descriptor = os.open(folder, _FOLDER)
        if _claim(descriptor) and folder.exists():
            return descriptor
        os.close(descriptor)
    return None


def _remove_abandoned(folder: Path) -> None:
    """Delete the unfinished folders that killed processes left in a folder; a living one holds the lock of its own.

    Without locks on the file system nothing is deleted.
    """
    for path in [path for path in folder.glob(".heed-*.tmp") if is_debris(path)]:
        with suppress(OSError):
            descriptor = os.open(path, _FOLDER)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(descriptor)


def remove_folder(path: Path) -> None:
    """Delete a folder, or a link; it is renamed first, so that no half-deleted folder is visible."""
    hidden = _temporary_name(path)
    path.rename(hidden)
    with suppress(OSError):  # it is hidden already; the next writer tries again
        _delete(hidden)
    _flush_folder(path.parent)


@contextmanager
def sole_writer(folder: Path, doing: str = "training in") -> Iterator[None]:
    """Lock a folder for writing, and remove what killed processes left there unfinished. `doing` names the work.

    The lock ends with the process, however that ends. Raises UsageError while another process holds it. On a file
    system without locks no process is refused.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if not _claim(descriptor):
            raise UsageError(f"another process is {doing} {folder}. Wait until it ends, or stop it.")
        remove_debris(folder)
        yield
    finally:
        os.close(descriptor)


def is_claimed(folder: Path) -> bool:
    """Whether another process is the sole writer of a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return not _claim(descriptor)
    finally:
        os.close(descriptor)


def _claim(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES)
    return True


def remove_debris(folder: Path) -> None:
    """Delete the unfinished files and folders that killed processes left in a folder and below it."""
    for path in [path for path in folder.rglob("*") if is_debris(path)]:
        with suppress(OSError):
            _delete(path)


def is_debris(path: Path) -> bool:
    """Whether the name of a path is that of an unfinished file or folder."""
    return re.fullmatch(r"\.heed-[0-9a-f]{12}\.tmp", path.name) is not None


def empty_folder(folder: Path, last: str) -> None:
    """Delete the content of a folder, the file `last` at the end: until then the folder can be recognised."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == last):
        _delete(path)


def require_utf8(text: str) -> None:
    """Raise UsageError for a text that is not UTF-8, as names of files may be, and recipes and libraries may not."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        begin = max(text.rfind(sign, 0, error.start) for sign in '/"\n') + 1
        end = min(place for place in (*(text.find(sign, error.start) for sign in '/"\n'), len(text)) if place >= 0)
        name = text[begin:end].encode("utf-8", "backslashreplace").decode()
        raise UsageError(f"'{name}' is not UTF-8 text. If it is the name of a file or folder, rename that.") from error


def _temporary_name(target: Path) -> Path:
    """A new hidden name in the same folder, so that renaming moves no data; short, as names are limited in length."""
    return target.with_name(f".heed-{secrets.token_hex(6)}.tmp")


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _refuse_existing(target: Path) -> None:
    if os.path.lexists(target):
        raise StorageError(f"cannot create {target}: it already exists. Choose another name, or remove it first.")


def _flush_tree(folder: Path) -> None:
    for parent, _, names in os.walk(folder):
        for name in names:
            with (Path(parent) / name).open("rb") as file:
                os.fsync(file.fileno())
        _flush_folder(Path(parent))


def _flush_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the file system is able to."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _name_file(error: BaseException, path: Path) -> None:
    """Add the file name to the error of a failed write, which lacks it or has that of the unfinished file."""
    if not isinstance(error, OSError) or error.errno not in _REASONS:
        return
    if error.filename is None or is_debris(Path(os.fsdecode(error.filename))):
        error.filename = str(path)


def sha256_file(path: str | Path) -> str:
    """SHA-256 of the bytes of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_plain_file(path: Path) -> bool:
    """Whether a path is a regular file, not a link, a pipe or a device, on which reading could hang."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def first_foreign(folder: Path) -> Path | None:
    """The first path in a folder or below it that is neither a regular file nor a folder: a link, a pipe, a device."""
    for parent, folders, names in os.walk(folder):
        for path in (Path(parent) / name for name in (*folders, *names)):
            if path.is_symlink() or not (path.is_dir() or is_plain_file(path)):
                return path
    return None


def require_room(folder: Path, needed: int) -> None:
    """Create the folder if it does not exist. Raises OSError if it cannot hold `needed` more bytes.

    The free space is not checked on a file system that does not report its size.
    """
    folder.mkdir(parents=True, exist_ok=True)
    probe = _temporary_name(folder / "probe")
    probe.touch(exist_ok=False)
    probe.unlink(missing_ok=True)
    usage = shutil.disk_usage(folder)
    if usage.total and usage.free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def free_bytes(path: str | Path) -> int:
    """Free bytes, for this user, on the device that holds `path` or would hold it once it exists."""
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def format_bytes(number: float) -> str:
    """Format a size: `31 MB`, `1.2 GB`; units of 1,000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.0f} {unit}" if number >= 10 or unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


_INCOMPLETE = -1  # torch.save to a path reports only that fewer bytes were written than expected

_REASONS = {
    errno.ENOSPC: "no space left on the device",
    errno.EDQUOT: "the disk quota is exceeded",
    errno.EFBIG: "the file would exceed the maximum file size",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "a part of its path is not a folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EIO: "the device reports an input/output error",
    _INCOMPLETE: "the file could not be written completely",
}

_ABOUT_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, _INCOMPLETE)


@contextmanager
def storage_errors(
    doing: str, needed: int | None = None, path: str | Path | None = None, otherwise: str = "choose another --out"
) -> Iterator[None]:
    """Turn failures to write into a StorageError with advice.

    `doing` names the work ("write the checkpoint"), `needed` its size in bytes, `path` the place in case the error does
    not name it, `otherwise` what to do if no space can be freed. OSError and the errors that torch, safetensors and
    tokenizers raise instead are recognised; every other error passes through.
    """
    try:
        yield
    except HeedError:
        raise
    except Exception as error:
        code, filename = _failure(error)
        if code not in _REASONS:
            raise
        raise StorageError(_explain(doing, code, needed, filename or path, otherwise)) from error


def _failure(error: BaseException) -> tuple[int | None, str | None]:
    """The error number and the file name, if they are known."""
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


def _explain(doing: str, code: int, needed: int | None, path: str | Path | None, otherwise: str) -> str:
    facts = f" at {path}" if path else ""
    advice = otherwise[:1].upper() + otherwise[1:]
    if code in _ABOUT_SPACE:
        parts = [f"needs {format_bytes(needed)}"] if needed is not None else []
        parts += [_room(code, path)] if path else []
        facts = f" ({', '.join(parts)})" if parts else ""
        advice = f"Free some space or {otherwise}"
    return f"cannot {doing}: {_REASONS[code]}{facts}. {advice}."


def _room(code: int, path: str | Path) -> str:
    """The space that is available: the maximum file size if that was exceeded, else the free space."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if code == errno.EFBIG and limit != resource.RLIM_INFINITY:
        return f"{format_bytes(limit)} allowed by ulimit -f"
    return f"{format_bytes(free_bytes(path))} free at {path}"
