"""The data doctor: is this data fit to train on? It looks before the training, and stops what would ruin it."""

from __future__ import annotations

from heed.text.doctor.diagnose import diagnose, diagnose_files, diagnose_text, diagnose_text_files
from heed.text.doctor.findings import Diagnosis, Finding, Severity
from heed.text.doctor.parts import how_to_exchange_part, with_parts
from heed.text.doctor.pieces import Pieces, unknown_pieces
from heed.text.doctor.thresholds import Thresholds

__all__ = [
    "Diagnosis",
    "Finding",
    "Pieces",
    "Severity",
    "Thresholds",
    "diagnose",
    "diagnose_files",
    "diagnose_text",
    "diagnose_text_files",
    "how_to_exchange_part",
    "unknown_pieces",
    "with_parts",
]
