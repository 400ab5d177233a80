"""Other programs that turn files of formats which heed does not take into files of formats that it takes."""

from __future__ import annotations

from collections.abc import Mapping

_OFFICE = "Save it as {0} in LibreOffice (soffice --convert-to {0}) and use that file"
_MACROS = "heed does not take files with macros. Save it as {0}"
_PANDOC = "Convert it with pandoc to {0} and use that file"
_TOOLKIT = "Convert it to .po with {0} of the Translate Toolkit, and back after the translation"
CONVERTERS: Mapping[str, str] = {
    **{suffix: _OFFICE.format("docx") for suffix in (".doc", ".rtf", ".dot", ".wpd", ".pages")},
    **{suffix: _OFFICE.format("xlsx") for suffix in (".xls", ".ods", ".numbers", ".xlsb")},
    **{suffix: _OFFICE.format("pptx") for suffix in (".ppt", ".odp", ".key")},
    **{suffix: _MACROS.format(f"{suffix[:-1]}x") for suffix in (".docm", ".xlsm", ".pptm")},
    **{suffix: _PANDOC.format(".md") for suffix in (".rst", ".tex", ".adoc", ".org", ".ipynb", ".wiki")},
    **{suffix: _TOOLKIT.format(tool) for suffix, tool in (
        (".properties", "prop2po"), (".resx", "resx2po"), (".ts", "ts2po"), (".strings", "prop2po"),
        (".ini", "ini2po"), (".ftl", "moz2po"), (".php", "php2po"), (".rc", "rc2po"),
    )},
    ".pdf": "Convert it with pdf2docx to .docx, or with pdftotext to .txt, and use that file",
    ".odg": "Copy its pages into a presentation, save that as pptx and use that file",
    ".epub": "Convert it with Calibre (ebook-convert) or pandoc to .docx and use that file",
    ".mobi": "Convert it with Calibre (ebook-convert) to .docx and use that file",
    ".mo": "Convert it with msgunfmt to .po and use that file",
    ".xml": "If it is XLIFF, name it .xliff; Android's strings become .po with android2po",
    **dict.fromkeys((".ass", ".ssa", ".sub", ".sbv"), "Convert it with ffmpeg to .srt and use that file"),
}  # fmt: skip
"""What turns a file of another format into one that heed takes."""
