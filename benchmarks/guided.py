"""Coverage-guided fuzzing of a parser of tests/parsers.py with atheris, which `make fuzz` runs where it is installed.

    python benchmarks/guided.py PARSER CORPUS -max_total_time=300

CORPUS is a folder of inputs, which grows by each that reaches other code. The remaining arguments are libFuzzer's. An
input that raises anything but a refusal, takes more than 20 seconds or makes the process larger than 3 GB ends the
process with another code than 0, and is kept next to the corpus.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

with atheris.instrument_imports(include=["heed", "python_multipart", "starlette", "tomllib"]):
    from parsers import PARSERS

LIMITS = ("-timeout=20", "-rss_limit_mb=3000", "-max_len=4000", "-verbosity=0", "-print_final_stats=1")


def main() -> None:
    """Fuzz until the time is over or something is found."""
    name, corpus, *flags = sys.argv[1:]
    logging.disable()
    artifacts = f"-artifact_prefix={Path(corpus)}-"
    with tempfile.TemporaryDirectory(prefix="heed-guided-") as folder:
        parser, place = PARSERS[name], Path(folder)
        atheris.Setup([sys.argv[0], corpus, artifacts, *LIMITS, *flags], lambda data: parser.accepts(place, data))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
