"""The data doctor: examines data before training, and stops on data that would ruin it."""

from __future__ import annotations

from heed.text.doctor.diagnose import diagnose, diagnose_text, unknown_pieces
from heed.text.doctor.direction import how_to_exchange_part
from heed.text.doctor.files import diagnose_files, diagnose_text_files, with_parts
from heed.text.doctor.findings import Diagnosis, Finding, Severity, Thresholds
from heed.text.doctor.questions import diagnose_questions
from heed.text.doctor.tables import diagnose_table

__all__ = [
    "Diagnosis", "Finding", "Severity", "Thresholds", "diagnose", "diagnose_files", "diagnose_questions",
    "diagnose_table", "diagnose_text", "diagnose_text_files", "how_to_exchange_part", "unknown_pieces", "with_parts",
]  # fmt: skip
