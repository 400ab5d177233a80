"""The encoding of an HTML file, as browsers find it.

A byte-order mark counts first, then the charset of a `<meta>` in the head, then that of an XML declaration. Charsets
have the meaning that the Encoding Standard of the WHATWG gives them: `iso-8859-1` is Windows-1252.
"""

from __future__ import annotations

import codecs
import re

from heed.documents.file_format import recognised_encoding
from heed.documents.html_tokens import html_tokens

HEAD = 1 << 16
"""Bytes in which a charset is looked for. Browsers look at the first 1,024, and start again for a later one."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s;\"']+)", re.IGNORECASE)
_XML = re.compile(r"<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']([^\"']{1,40})[\"']")
_SUPPORTED = re.compile(r"utf-8|iso8859|cp(125\d|866|874|932|949)$|koi8|euc|gb|big5|iso2022_jp$|mac-")
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gbk",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-8",  # the declaration could not be read
    "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
}
"""What a charset means in HTML, by Python's names."""
_ALIASES = {
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "windows-949": "cp949",
    "windows-874": "cp874",
    "x-gbk": "gbk",
    "x-x-big5": "big5hkscs",
    "x-cp1251": "cp1251",
    "x-cp1252": "cp1252",
    "x-user-defined": "cp1252",
}
"""Charsets of HTML that Python has by no name, or by another one."""


def encoding_of(data: bytes, name: str) -> str:
    """The encoding that a page declares; UTF-8 without one, and UTF-16 that is recognised.

    A page that is valid UTF-8, with other characters than ASCII, is UTF-8 whatever it declares: other encodings yield
    that by no chance, and a server may send another charset than the page has.
    """
    recognised = recognised_encoding(data)
    if recognised != "utf-8-sig" or data.startswith(codecs.BOM_UTF8):
        return recognised
    declared = _declared(data[:HEAD].decode("latin-1"))
    if declared in ("", "utf-8") or (not data.isascii() and _is_utf_8(data)):
        return "utf-8-sig"
    return declared


def _declared(head: str) -> str:
    """The first charset in the head that browsers know; empty without one."""
    for token in html_tokens(head):
        if token.kind == "open" and token.tag == "body":
            break
        if token.kind != "open" or token.tag != "meta":
            continue
        values = token.attributes()
        charset = values.get("charset", "")
        if not charset and values.get("http-equiv", "").lower() == "content-type":
            found = _CHARSET.search(values.get("content", ""))
            charset = found[1] if found else ""
        if encoding := _known(charset):
            return encoding
    xml = _XML.match(head)
    return _known(xml[1]) if xml else ""


def _known(charset: str) -> str:
    """Python's name for a charset of HTML; empty for an unknown one."""
    label = charset.strip().lower()
    try:
        codec = _ALIASES.get(label) or codecs.lookup(label).name
    except (LookupError, ValueError):
        return ""
    codec = _MEANT.get(codec, codec)
    return codec if _SUPPORTED.match(codec) else ""


def _is_utf_8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
