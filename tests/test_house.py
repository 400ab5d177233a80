"""Order of the checkout: the README's first screen, links, file names, and the version."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import heed

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + sorted(ROOT.glob("docs/**/*.md"))
PYTHON_FILES = [path for folder in ("src", "tests", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]

FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(<?([^()\s>]+)")
NAMED_FILE = re.compile(r"`([\w.-]+/[\w./-]*(?:\.py|\.toml|/))`")
NAMED_MODULE = re.compile(r"`heed((?:\.\w+)+)`")
MACHINE_PATH = re.compile(r"(?<![\w./~-])/(?:work|root)/")


def links_of(markdown: str) -> list[str]:
    """The files that a page links to, as written, without web addresses and places inside a page."""
    targets = [target.partition("#")[0] for target in LINK.findall(FENCED.sub("", markdown))]
    return [target for target in targets if target and not re.match(r"[a-z]+:", target)]


def files_of_the_project() -> list[Path]:
    """Every file that git has or would add."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip("not a git checkout")
    return [path for name in result.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_the_readme_shows_demo_and_test_on_its_first_screen() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    for command in ("make demo", "make test"):
        assert any(command in line for line in first_screen), f"{command} is not in the README's first 40 lines"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    broken = [
        link
        for link in links_of(page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists() or not (page.parent / link).resolve().is_relative_to(ROOT)
    ]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_source_file_that_a_page_names_exists(page: Path) -> None:
    roots = [ROOT, ROOT / "src", ROOT / "src" / "heed"]
    names = sorted(set(NAMED_FILE.findall(FENCED.sub("", page.read_text(encoding="utf-8")))))
    assert not [name for name in names if not any((root / name).exists() for root in roots)]


def test_only_links_to_files_are_checked() -> None:
    page = "[a](docs/a.md#part) [b](https://example.org/b.md) [c](#part) ![d](<d.png>)\n```\n[e](e.md)\n```\n"
    assert links_of(page) == ["docs/a.md", "d.png"]


def test_no_file_contains_a_path_of_the_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in files_of_the_project()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert not found, "\n" + "\n".join(found)


def test_every_python_file_has_a_docstring() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in PYTHON_FILES
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not silent, "no docstring:\n" + "\n".join(silent)


def is_in_heed(names: list[str]) -> bool:
    """Whether these names, after `heed`, are a module, or a module and something in it."""
    folder = ROOT / "src" / "heed"
    for place, name in enumerate(names):
        if (folder / name).is_dir():
            folder = folder / name
            continue
        module, rest = folder / f"{name}.py", names[place + 1 :]
        if not module.is_file():
            module, rest = folder / "__init__.py", names[place:]
        return not rest or re.search(rf"\b{rest[0]}\b", module.read_text(encoding="utf-8")) is not None
    return True


def test_every_module_that_the_source_names_exists() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: heed{name}"
        for path in PYTHON_FILES
        for name in NAMED_MODULE.findall(path.read_text(encoding="utf-8"))
        if name != ".json" and not is_in_heed(name[1:].split("."))
    ]
    assert not missing, "\n" + "\n".join(missing)


def test_no_file_has_a_generic_name() -> None:
    assert not [path for path in PYTHON_FILES if path.name in {"utils.py", "util.py", "helpers.py", "common.py"}]


def test_there_is_one_version() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        declared = tomllib.load(file)["project"]["version"]
    assert heed.__version__ == declared
    assert version("heed") == declared, "the installed metadata is old: make setup"


def test_shapes_are_checked_while_tests_run() -> None:
    import torch
    from beartype.roar import BeartypeCallHintViolation

    from heed.nn.contract import TokenSource

    ids = torch.zeros(2, 3, dtype=torch.long)
    TokenSource(ids, mask=torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(BeartypeCallHintViolation):
        TokenSource(ids, mask=torch.ones(2, 4, dtype=torch.bool))


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.name)
def test_imports_of_benchmarks_exist(path: Path) -> None:
    taken = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
    of_heed = [node for node in taken if node.module and node.module.split(".")[0] == "heed"]
    missing = [
        f"{node.module}.{alias.name}"
        for node in of_heed
        for alias in node.names
        if not hasattr(importlib.import_module(str(node.module)), alias.name)
    ]
    assert missing == []
