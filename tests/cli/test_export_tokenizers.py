"""Tests of exported translators whose tokenizers, tags or texts the other program reads in another way, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import call
from toy import prepared, with_weights

from heed.export import verification

POST = {"model__norm": "post", "data__src_lang": "aa", "data__tgt_lang": "bb"}


def findings_of(path: Path) -> dict[str, Any]:
    findings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return findings


@pytest.mark.parametrize("kind", ["word", "character", "byte"])
def test_a_marian_without_a_tokenizer_is_compared_by_ids(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("transformers", reason="the package transformers is not installed")
    run = with_weights(prepared(tmp_path, tokenizer__kind=kind, data__hold_out=20, **POST))
    result = call("export", run.folder, "--to", "marian", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    assert f"without a tokenizer, as only heed has the kind '{kind}': use token ids" in result.err
    findings = findings_of(tmp_path / "out" / verification.FILE)
    assert findings["verified"] and findings["largest_difference"] < 1e-4 and findings["search"]
    assert findings["equal_outputs"] in (None, 1.0)
    assert "AutoTokenizer" not in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
