"""Image files of folders, archives and single files."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from toy_images import write_tar

from heed.core.errors import DataError, HeedError, MissingInputError
from heed.images import files as module
from heed.images.files import open_images


def test_a_folder_an_archive_and_a_file_have_the_same_images(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    contents = {"a.png": b"1", "more/b.JPG": b"2"}
    for name, content in {**contents, "notes.txt": b"no image"}.items():
        (folder / name).write_bytes(content)
    (folder / "link.png").symlink_to(folder / "a.png")
    archive = write_tar(tmp_path / "photos.tar", [*contents.items(), ("notes.txt", b"no image"), ("._a.png", b"junk")])
    for place in (folder, archive):
        with open_images(place) as images:
            assert {name: images.read(name) for name in images.names} == contents
            assert images.find("./b.JPG") == images.find("more/b.JPG") == "more/b.JPG"
            assert images.find("c.png") is None
    with open_images(folder / "a.png") as images:
        assert (images.names, images.read("a.png")) == (["a.png"], b"1")


def test_an_archive_of_the_present_folder_has_the_same_names(tmp_path: Path) -> None:
    with open_images(write_tar(tmp_path / "x.TAR", [("./a/x.png", b"1"), ("./b/x.png", b"2")])) as images:
        assert images.names == ["a/x.png", "b/x.png"]
        assert images.find("./a/x.png") == images.find("a/x.png") == "a/x.png"
        assert images.read("b/x.png") == b"2"


def test_a_name_without_folders_is_enough_only_where_it_is_unique(tmp_path: Path) -> None:
    with open_images(write_tar(tmp_path / "x.tar", [("a/x.png", b"1"), ("b/x.png", b"2")])) as images:
        assert images.find("x.png") is None
        assert images.find("a/x.png") == "a/x.png"
        with pytest.raises(
            DataError, match=r"captions\.tsv names 2 images that .*x\.tar does not have: 'x\.png', 'y'\. It"
        ):
            images.require(["x.png", "a/x.png", "y", "x.png"], "captions.tsv")


def test_the_identity_changes_with_any_content(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"12")
    with open_images(tmp_path) as images:
        before = images.identity()
    (tmp_path / "a.png").write_bytes(b"13")
    with open_images(tmp_path) as images:
        assert before[0] == images.identity()[0] == 2
        assert before[1] != images.identity()[1]


def special(kind: bytes) -> tarfile.TarInfo:
    """A member that is no file."""
    member = tarfile.TarInfo("a.png")
    member.type, member.linkname = kind, "/etc/passwd"
    return member


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (tarfile.TarInfo("../a.png"), "the member '../a.png' points outside the archive; nothing was read."),
        (tarfile.TarInfo("/etc/a.png"), "the member '/etc/a.png' points outside the archive; nothing was read."),
        (tarfile.TarInfo("x/../../a.png"), "the member 'x/../../a.png' points outside the archive; nothing was read."),
        (special(tarfile.SYMTYPE), "the member 'a.png' is a link; pack the image itself."),
        (special(tarfile.LNKTYPE), "the member 'a.png' is a link; pack the image itself."),
        (special(tarfile.CHRTYPE), "the member 'a.png' is a device or special file; pack the image itself."),
        (special(tarfile.FIFOTYPE), "the member 'a.png' is a device or special file; pack the image itself."),
    ],
    ids=["climbs out", "absolute", "climbs out later", "link", "hard link", "device", "pipe"],
)
def test_an_archive_with_such_a_member_is_refused(tmp_path: Path, member: tarfile.TarInfo, message: str) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as tar:
        tar.addfile(member)
    with pytest.raises(DataError) as raised:
        open_images(path)
    assert str(raised.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("x.tar", b"text " * 300, DataError, "is not a tar archive, or it is damaged"),
        ("x.tar", b"", DataError, "is not a tar archive, or it is damaged"),
        ("y.tar.gz", b"\x1f\x8b", DataError, "is not a tar archive, or it is damaged"),
        ("gone.tar", None, MissingInputError, "does not exist"),
    ],
)
def test_what_is_no_archive_is_refused(
    tmp_path: Path, name: str, content: bytes | None, error: type[HeedError], message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=message):
        open_images(tmp_path / name)


def test_a_folder_without_images_and_a_file_that_is_too_large_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=r"has no images: the names of image files end in \.jpg"):
        open_images(tmp_path)
    monkeypatch.setattr(module, "MAX_BYTES", 3)
    for place in (write_tar(tmp_path / "x.tar", [("a.png", b"1234")]), tmp_path):
        (tmp_path / "a.png").write_bytes(b"1234")
        with open_images(place) as images, pytest.raises(DataError, match=r"a\.png is larger than 3 bytes, the limit"):
            images.read("a.png")


def test_a_member_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "x.tar", [("a.png", b"1" * 5000)])
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(DataError, match=r"damaged"), open_images(path) as images:
        images.read("a.png")
