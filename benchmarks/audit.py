"""Audit of what heed depends on: licences against a list of allowed ones, and versions against known advisories.

    python benchmarks/audit.py
    python benchmarks/audit.py --advisories .venv/audit/bin/pip-audit

Looks at heed's dependencies with all extras, and at theirs, as they are installed. Exits with 1 if one has another
licence or none, if one is missing, or if an advisory concerns a pinned version. Where no database of advisories can be
reached, it says so and compares only licences.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from email.message import Message
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"

ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0",
    "CNRI-Python", "ISC", "MIT", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib",
}  # fmt: skip
"""SPDX names. All permit use in programs of any licence; that of Mozilla asks for changes to its own files."""

NAMES = {
    "Apache Software License": "Apache-2.0", "Apache 2.0": "Apache-2.0", "Apache 2.0 License": "Apache-2.0",
    "BSD License": "BSD-3-Clause", "BSD": "BSD-3-Clause", "3-Clause BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC", "MIT License": "MIT", "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}  # fmt: skip
"""What older metadata call them."""

KNOWN = {"axe-playwright-python": "MIT"}
"""Those whose metadata name no licence: that of their licence file."""

NO_NETWORK = re.compile(r"ConnectionError|Max retries|NameResolution|Failed to (?:connect|establish)|timed out", re.I)
UNREACHABLE = "No database of advisories can be reached from here. Run `make audit` where the network allows it."


def installed(requirement: str) -> Iterator[tuple[str, metadata.Distribution | None]]:
    """What a requirement needs, with all that this needs in turn; None for what is not installed."""
    seen: set[tuple[str, str]] = set()
    todo = [Requirement(requirement)]
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            yield name, None
            continue
        for extra in {"", *wanted.extras}:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            needs = map(Requirement, found.requires or ())
            todo += [each for each in needs if each.marker is None or each.marker.evaluate({"extra": extra})]
        yield name, found


def licence_of(name: str, about: Message) -> str:
    """The licence of a distribution as an SPDX expression, or as its metadata name it; empty if they do not."""
    if expression := about["License-Expression"]:
        return str(expression)
    classifiers = [each.split(" :: ")[-1] for each in about.get_all("Classifier", ()) if each.startswith("License ::")]
    named = [NAMES[each] for each in classifiers if each in NAMES]
    text = str(about["License"] or "").strip()
    if not named and text and "\n" not in text:
        return NAMES.get(text, text)
    return " AND ".join(named) or KNOWN.get(name, "")


def is_allowed(expression: str) -> bool:
    """Whether an SPDX expression permits a use under allowed licences alone. In parentheses, all must be allowed."""
    alternatives = [expression] if "(" in expression else expression.split(" OR ")
    return any({*re.split(r" (?:AND|OR) ", each.replace("(", "").replace(")", ""))} <= ALLOWED for each in alternatives)


def licence_problems(requirement: str) -> list[str]:
    """One line for each dependency that is missing or whose licence is not allowed."""
    problems = []
    for name, found in sorted(dict(installed(requirement)).items()):
        if found is None:
            problems.append(f"{name}: not installed, so its licence is not known")
        elif not is_allowed(licence := licence_of(name, found.metadata)):
            problems.append(f"{name} {found.version}: {licence or 'its metadata name no licence'}")
    return problems


def advisories(program: str) -> tuple[bool, str]:
    """(whether no advisory concerns a pinned version, what to print), by pip-audit, which queries the package index."""
    flags = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    command = [program, "--requirement", str(CONSTRAINTS), *flags]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if not result.stdout.startswith("{"):
        return (True, UNREACHABLE) if NO_NETWORK.search(result.stderr) else (False, result.stderr.strip())
    audited = json.loads(result.stdout)["dependencies"]
    known = [each for each in audited if "skip_reason" not in each]
    found = [
        f"{each['name']} {each['version']}: {advisory['id']}, mended in {', '.join(advisory['fix_versions']) or 'none'}"
        for each in known
        for advisory in each["vulns"]
    ]
    if not known:
        return True, UNREACHABLE
    left = f"; the index has no facts about {len(audited) - len(known)} others" if len(known) < len(audited) else ""
    return not found, "\n".join([*found, f"advisories: {len(known)} versions looked up, {len(found)} found{left}"])


def main() -> None:
    """Print the problems."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--advisories", metavar="PROGRAM", help="pip-audit, to look for advisories too")
    given = parser.parse_args()
    problems = licence_problems("heed[dev]")
    print("\n".join(problems) or f"licences: all dependencies have one of {', '.join(sorted(ALLOWED))}")
    held, said = advisories(given.advisories) if given.advisories else (True, "")
    print(said)
    sys.exit(bool(problems) or not held)


if __name__ == "__main__":
    main()
