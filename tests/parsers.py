"""Readers of bytes from strangers: one table for the replay of nasty files, the law of linear work, and fuzzing.

A parser gets bytes and a folder for files. It returns what it reads, or refuses with one of its errors; any other
exception is a fault. Its work is counted in calls of functions, which depend on no clock.
"""

from __future__ import annotations

import gc
import gzip
import hashlib
import io
import json
import lzma
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from cProfile import Profile
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import zstandard
from loud import translated
from packages import packed
from pydantic import BaseModel
from starlette.datastructures import Headers

from heed.compress.container import SIGNATURE, unpack
from heed.core.config import read_toml
from heed.core.errors import HeedError
from heed.core.run_manifest import read_digests
from heed.core.sealed import sealed
from heed.core.weight_file import read_header
from heed.data.line_hashes import LineHashes
from heed.data.store import TokenStore
from heed.data.validation import read_valid
from heed.decoding.phrases import Glossary
from heed.documents.formats import FORMATS
from heed.evaluation.score_log import read_scores
from heed.inference.output_checks import Confidence
from heed.metrics.word_frequency import WordCounts
from heed.recipe import build_recipe
from heed.report.validation import read_analysis
from heed.run import Run
from heed.serve.apis import heed_schema, libretranslate_fields, openai_schema
from heed.serve.bodies import JSON, MULTIPART, URLENCODED, json_body
from heed.serve.errors import ApiError
from heed.statistical.arpa import read_arpa
from heed.text.readers import RECORD_READERS, CorpusFiles, read_lines, read_pairs
from heed.text.tokenizers import load_tokenizer
from heed.training.manifest import checked_manifest
from heed.training.metrics_log import read_metrics

T = TypeVar("T")
NASTY = Path(__file__).parent / "fixtures" / "nasty"
"""A corpus of nasty inputs, named after the parser that they were made for: `json_body-deep`."""
KEPT = sorted(NASTY.iterdir())
MAX_BODY = 1 << 20
LINES_READ = 5_000
CALLS_AT_LEAST, CALLS_PER_BYTE = 100_000, 250
"""Calls that a parser may make: for an input of any size, and for each byte of it."""


Sample = tuple[bytes, bytes, bytes] | Callable[[int], bytes]
"""An input that grows: its beginning, the part that is repeated and its end, or what has so many parts."""


@dataclass(frozen=True)
class Parser:
    """A reader, the errors by which it refuses an input, and inputs that grow."""

    read: Callable[[Path, bytes], object]
    grows: Sequence[Sample]
    refusals: tuple[type[Exception], ...] = (HeedError,)

    def accepts(self, folder: Path, data: bytes) -> bool:
        """Read bytes in a folder of their own. Returns whether they were read; raises what is no refusal."""
        return in_a_thread(partial(self.attempt, folder, data))

    def attempt(self, folder: Path, data: bytes) -> bool:
        """As `accepts`, in this thread."""
        try:
            self.read(folder, data)
        except self.refusals:
            return False
        return True

    def calls(self, folder: Path, data: bytes) -> int:
        """The number of calls of functions, of Python's and of C, while these bytes are read or refused."""
        return in_a_thread(partial(self._calls, folder, data))

    def _calls(self, folder: Path, data: bytes) -> int:
        self.attempt(folder, data)  # what is made once is not counted
        profile = Profile(subcalls=False)
        gc.disable()  # nor are calls that free what other tests have left
        profile.enable()
        try:
            self.attempt(folder, data)
        finally:
            profile.disable()
            gc.enable()
        return sum(entry.callcount for entry in profile.getstats())


def in_a_thread(work: Callable[[], T]) -> T:
    """The result of work in a thread of its own, as a server's job: a browser's event loop may run in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def most_calls(data: bytes) -> int:
    """The number of calls that a parser may make for an input."""
    return CALLS_AT_LEAST + CALLS_PER_BYTE * len(data)


def parser_of(path: Path) -> str:
    """The name of the parser that a kept input was made for."""
    return path.name.partition("-")[0].replace("_", " ")


# --- readers --------------------------------------------------------------------------------------------


def document(name: str, folder: Path, data: bytes) -> object:
    """Translate a file to its own language."""
    return translated(name, data, str)


def records(name: str, folder: Path, data: bytes) -> object:
    """Read pairs from a file."""
    files = CorpusFiles(pairs=written(folder, name, data), src_lang="en", tgt_lang="de")
    return [*islice(read_pairs(files), LINES_READ)]


def lines(name: str, folder: Path, data: bytes) -> object:
    """Read lines from a plain or compressed file."""
    return [*islice(read_lines(written(folder, name, data)), LINES_READ)]


def in_file(name: str, read: Callable[[Path], object], folder: Path, data: bytes) -> object:
    """Read a file of this name in the folder."""
    return read(written(folder, name, data))


def in_folder(name: str, read: Callable[[Path], object], folder: Path, data: bytes) -> object:
    """Read a folder with a file of this name."""
    written(folder, name, data)
    return read(folder)


def resealed(name: str, read: Callable[[Path], object], folder: Path, data: bytes) -> object:
    """Read a folder with a file of sealed JSON, whose seal is made to fit, so that what it says is read."""
    try:
        entries = json.loads(data)
        data = sealed(entries).encode() if isinstance(entries, dict) else data
    except (ValueError, RecursionError):
        pass
    return in_folder(name, read, folder, data)


def form(media_type: str, folder: Path, data: bytes) -> object:
    """Read a form of LibreTranslate's API."""
    headers = Headers({"content-type": media_type})
    fields = libretranslate_fields.read_fields({}, headers, data, MAX_BODY)
    kind = libretranslate_fields.FileFields if "file" in fields else libretranslate_fields.TranslateFields
    return libretranslate_fields.validated(kind, fields)


BODIES: Sequence[type[BaseModel]] = (
    openai_schema.CompletionRequest, heed_schema.TranslateBody, heed_schema.InspectBody, heed_schema.NextBody,
    heed_schema.ScoreBody, heed_schema.GenerateBody, heed_schema.PredictBody, heed_schema.DetectBody,
)  # fmt: skip


def bodies(folder: Path, data: bytes) -> object:
    """Read the body of a request as that of each route."""
    refused = []
    for kind in BODIES:
        try:
            return json_body(kind, Headers({"content-type": JSON}), data)
        except ApiError as error:
            refused.append(error)
    raise refused[-1]


def compressed_by_heed(folder: Path, data: bytes) -> object:
    """Read a file of `heed compress` with a header of these bytes; its checksum is made to fit."""
    body = SIGNATURE + len(data).to_bytes(4, "little") + data
    return unpack(body + zlib.crc32(body).to_bytes(4, "little"))


def recipe(path: Path) -> object:
    """Read a recipe with its values."""
    return build_recipe(read_toml(path))


def store(folder: Path) -> object:
    """Open a token store whose files are those of one row of two tokens, and read it."""
    written(folder, "tgt.tok", b"\5\0\6\0")
    written(folder, "tgt.off", bytes(8) + b"\2" + bytes(7))
    opened = TokenStore.open(folder)
    return [opened.row(side, number) for side in opened.sides for number in range(min(len(opened), 10))]


def in_run(name: str, read: Callable[[Run], object], folder: Path, data: bytes) -> object:
    """Read a run with a file of this name."""
    written(folder, "recipe.toml", b"")
    written(folder, name, data)
    return read(Run(folder))


def checkpoint(folder: Path) -> object:
    """Compare the files of a checkpoint, of which there is one."""
    written(folder, "state.json", b"{}")
    return checked_manifest(folder, ["state.json"])


def written(folder: Path, name: str, data: bytes) -> Path:
    """A file with these bytes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def glossary(path: Path) -> object:
    """Read a glossary, and look its terms up."""
    return Glossary.read(path, str).terms_for("a text of the house")


# --- the table ------------------------------------------------------------------------------------------


def numbered(begin: bytes, part: bytes, end: bytes) -> Callable[[int], bytes]:
    """Inputs with numbers in the place of `%d`: in each part its own, at the beginning that of the parts."""

    def sample(times: int) -> bytes:
        parts = [part.replace(b"%d", b"%d" % number) for number in range(times)]
        return begin.replace(b"%d", b"%d" % times) + b"".join(parts) + end

    return sample


def stored_hashes(times: int) -> bytes:
    """A file of line hashes."""
    file = io.BytesIO()
    np.save(file, np.arange(times, dtype="<u8"))
    return file.getvalue()


DIGEST = hashlib.sha256(b"{}").hexdigest().encode()
XML: list[Sample] = [
    (b"<tmx><body>", b"<tu><tuv xml:lang='en'><seg>a</seg></tuv><tuv xml:lang='de'><seg>b</seg></tuv></tu>",
     b"</body></tmx>"),
    (b"<tmx><body>", b"<tu><tuv xml:lang='en'><seg>a <ph>b</ph>", b""),
    (b"<tmx><body><tu><tuv xml:lang='en'><seg>", b"a&amp;<bpt i='1'>b</bpt>", b"</seg></tuv></tu></body></tmx>"),
    (b"<tmx>", b"<a>", b""), (b"<tmx>", b"<!-- a -->", b"</tmx>"), (b"<tmx ", b"a='' ", b"/>"),
]  # fmt: skip
ROWS = [
    (b"", b"a,b\n", b""),
    (b"en,de\n", b'"a ""b""",\n', b""),
    (b"", b",", b""),
    (b'"', b"a\n", b""),
    (b"", b"\n", b""),
]
TABS = [(b"", b"a\tb\n", b""), (b"", b"a\t", b""), (b"", b"\t\n", b""), (b"en\tde\n", b"a\t\n", b"")]
TEXT = [(b"", b"A dog. ", b""), (b"", b"a\n\n", b""), (b"", b"a", b""), (b"", b". ", b""), (b"", b'"Mr. ', b"")]
HTML = [(b"", part, b"") for part in (
    b"<b> </b> ", b"<a ", b"<!--", b"<p>a <i>b</i></p>", b"&amp;", b"<code><b></i>", b"<p lang=fr>", b"{{ a }} ", b"{%",
    b"<a b={{ c }} ", b"<meta charset=a>",
)]  # fmt: skip
SUBTITLES = [
    (b"", b"1\n00:00:01,000 --> 00:00:02,000\nA dog.\n\n", b""), (b"", b"1\n00:00:01,000 --> 00:00:02,000\n\n", b""),
    (b"", b"00:00:01,000 --> ", b""), (b"1\n00:00:01,000 --> 00:00:02,000\n", b"a <i>b</i>\n", b""), (b"", b"1\n", b""),
]  # fmt: skip
MARKDOWN = [(b"", part, b"") for part in (
    b"A *b* `c` [d](e) dog.\n\n", b"> ", b"- a\n ", b"*a ", b"**a_", b"[a](", b"![", b"`a", b"<a ",
    b"|a", b"[a]: b\n", b"a  \n", b"a\n", b"```\n", b"&amp;", b"\\", b"<!-- ", b"| a | b |\n", b"]", b"[a]",
    b"1. a\n", b"    ", b"$a", b"$a$ ", b"$$\n", b"\\[\na\n", b":::note a\n", b"!!! a\n    ", b": a\n", b"==a",
    b"{.a} ",
)]  # fmt: skip
CATALOGUE = [
    (b"", b'msgid "a"\nmsgstr ""\n\n', b""), (b'msgid "a"\nmsgstr ""\n', b'"a"\n', b""), (b"", b"#, fuzzy\n", b""),
    (b'msgid ""\nmsgstr "Plural-Forms: nplurals=9; plural=', b"(n+", b'\\n"\n'),
    (b'msgid "a\nmsgid_plural "', b'\\"', b'"'),
    *((b'msgid "', part, b'"\nmsgstr ""\n') for part in (b"\\n<b>a ", b"{a, plural, one {", b"&amp;<")),
]  # fmt: skip
STRINGS = [
    (b"{", b'"a":"b c",', b'"a":"b"}'), (b'{"a":', b"[", b""),
    *((b'["', part, b'"]') for part in (b"a {", b"<a ", b"\\u00e9 ", b"{a, select, b {", b"</b>", b"<b>")),
]  # fmt: skip
W = b'<w:d xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
WORD = [
    (W, b"<w:p><w:r><w:t>a </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>b</w:t></w:r></w:p>", b"</w:d>"),
    *((W + b"<w:p><w:r><w:t>a</w:t>", part, b"</w:r></w:p></w:d>") for part in (
        b"<w:t>b &amp; </w:t>", b"<w:tab/>", b"<w:a/>", b'<w:fldChar w:fldCharType="begin"/>', b"<w:t>",
        b"<w:b><w:p/></w:b>",
        b'<w:fldChar w:fldCharType="begin"/><w:fldChar w:fldCharType="separate"/><w:t>c</w:t>',
    )),
    (
        W, b'<w:p><w:r><w:fldChar w:fldCharType="begin"/><w:instrText>INDEX</w:instrText>'
        b'<w:fldChar w:fldCharType="separate"/><w:t>a</w:t></w:r></w:p>', b"</w:d>",
    ),
    (W + b"<w:p>", b"<w:hyperlink><w:r><w:t>a</w:t></w:r></w:hyperlink>", b"</w:p></w:d>"), (W, b"<w:p>", b""),
]  # fmt: skip
S = b'<s xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
CELLS = [(S, b"<si><t>a b</t></si>", b"</s>"), (S + b"<si>", b"<r><rPr><a/></rPr><t>a</t></r>", b"</si></s>")]
T = b'<t:d xmlns:t="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
OPEN = [
    (T, b"<t:p>a <t:span>b</t:span></t:p>", b"</t:d>"),
    (T + b"<t:p>", b"a<t:tab/><t:note><t:p>b</t:p></t:note>", b""),
]
UNITS = [
    (b"<xliff><file>", b"<trans-unit><source>a <g>b</g> c</source><target/></trans-unit>", b"</file></xliff>"),
    (b"<xliff><trans-unit><source>", b"a <bx id='1'/>", b"</source></trans-unit></xliff>"), (b"<xliff>", b"<a>", b""),
    (
        b"<xliff><trans-unit><source>a</source><target><mrk mtype='seg' mid='1'>b</mrk></target><seg-source>",
        b"<mrk mtype='seg' mid='1'>a</mrk>", b"</seg-source></trans-unit></xliff>",
    ),
    (b"<xliff><unit>", b"<segment><source>a</source></segment>", b"</unit></xliff>"),
]  # fmt: skip
YAML = [
    (b"a: ", b"a b ", b"\n"), (b"", b"- a b\n", b""), (b"", b"[", b""), (b"", b"- ", b""), (b"a: |\n", b"  a b\n", b""),
    (b"a: '", b"a b''", b"'"), (b"", b"a: &b c d\n", b""), (b"", b"# a\n", b""), (b'"', b"\\u00e9 ", b'"'),
    (b"", b"? ", b""),
    (b"{", b"a: b c,\n", b"}"), (b"", b"---\na b\n", b""), (b"a: >\n", b"\n", b"  a"),
]  # fmt: skip
OBJECTS: list[Sample] = [
    (b'{"q":[', b'"a",', b'"a"]}'), (b'{"a":', b"[", b""), (b"{", b'"\\ud800":1,', b'"a":1}'),
    (b'{"text":[', b"{},", b"{}]}"), (b"", b"9", b""),
]  # fmt: skip
LOG = [(b"", b'{"event":"train","step":1}\n', b""), (b"", b"{", b""), (b"", b"\n", b""), (b"", b"[[]\n", b"")]
TOML: list[Sample] = [
    (b'task = "translation"\n[data]\nsrc = "a"\ntgt = "b"\n[decoding]\nban = [', b'"a", # b\n' * 9, b"]"),
    (b"a = [\n", b"1, # a\n", b"]"),
    (b'a = """', b"\n", b'"""'),
    (b"", b"[a]\n", b""),
    (b"a = ", b"[", b""),
    (b'a = "', b"a", b'"'),
    (b"", b"a.", b"b = 1"),
    (b"a = [", b"1,", b"]"),
]
ENTRIES: list[Sample] = [
    lambda times: b"\\data\\\nngram 1=%d\n\n\\1-grams:\n-1\t</s>\n%s\\end\\\n"
    % (times + 1, b"".join(b"-1\ta%d\t-1\n" % number for number in range(times))),
    (b"\\data\\\nngram 1=9\n\n\\1-grams:\n", b"-1\ta\t-1\n", b"\\end\\\n"), (b"\\data\\\n", b"ngram 1=1\n", b""),
    (b"\\data\\\nngram 1=1\n\n\\1-grams:\n-1\t", b"a ", b"\n\\end\\\n"), (b"", b"\n", b""),
]  # fmt: skip
PACKED = [(b"", b"a\n", b"")]
FLOAT = b'{"dtype":"F32","shape":[1],"data_offsets":[4,8]}'
TENSORS: list[Sample] = [
    numbered(b"{", b'"a%d":' + FLOAT + b",", b'"b":' + FLOAT + b"}"),
    (b"{", b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},', b'"b":{}}'),
    (b'{"a":', b"[", b""),
]
LISTED: list[Sample] = [
    numbered(b'{"format":1,"sha256":{', b'"a%d":["' + DIGEST + b'"],', b'"b":["' + DIGEST + b'"]}}')
]
SAVED: list[Sample] = [
    numbered(b'{"format":1,"sha256":{"state.json":"' + DIGEST + b'"},"made_with":{', b'"a%d":"b",', b'"c":"d"}}')
]
STORED: list[Sample] = [
    numbered(
        b'{"format":"heed-tokens-1","num_rows":1,"sides":{"tgt":{"vocab_size":9,"dtype":"uint16","tokens":'
        b'{"num_bytes":4,"sha256":""},"offsets":{"num_bytes":16,"sha256":""}}},"fingerprint":{', b'"a%d":1,',
        b'"b":2}}',
    )
]  # fmt: skip
CODED: list[Sample] = [
    numbered(
        b'{"format":1,"heed":"1","model":"a","coded":true,"num_bytes":1,"sha256":"' + DIGEST + b'","arithmetic":{',
        b'"a%d":"b",', b'"c":"d"}}',
    ),
    (b'{"format":1,"a":"', b"a", b'"}'), (b"", b"[", b""),
]  # fmt: skip
CALIBRATED: list[Sample] = [
    (
        b'{"mean":[0,0,0,0],"scale":[1,1,1,1],"weights":[1,1,1,1],"bias":0,"good_chrf":50,"num_sentences":9,'
        b'"beam_size":2,"calibration_error":0.1,"amiss_good":0.1', b"0", b"}",
    )
]  # fmt: skip
SCORED: list[Sample] = [
    (
        b'{"step":1,"num_lines":9,"scores":[', b'{"name":"bleu","value":1.5,"signature":"a"},',
        b'{"name":"bleu","value":1.5,"signature":"a"}]}',
    )
]  # fmt: skip
SEALED: list[Sample] = [(b'{"format":1,"sha256":{', b'"a":["b"],', b'"c":[]}}'), (b"{", b'"a":{', b"")]
FIELDS: list[Sample] = [
    (b"source=en&target=de&q=", b"%41", b""),
    (b"", b"q=a&", b""),
    (b"", b"&", b""),
    (b"", b"%", b""),
    (b"q=", b"+", b""),
]
PARTS: list[Sample] = [
    (
        b'--x\r\nContent-Disposition: form-data; name="source"\r\n\r\nen\r\n'
        b'--x\r\nContent-Disposition: form-data; name="target"\r\n\r\nde\r\n'
        b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n', b"\r\n-a", b"\r\n--x--\r\n",
    ),
    (b"", b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\na\r\n', b"--x--\r\n"),
    (b"--x\r\n", b"a: b\r\n", b""), (b"--x\r\nContent-Disposition: form-data; ", b'name="', b""),
    (b"", b"--x\r\n", b""),
    (b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n', b"\r\n--", b"\r\n--x--\r\n"),
]  # fmt: skip
PIECES: list[Sample] = [
    numbered(b'{"heed":{"tokenizer":"word","version":1},"pieces":[', b'"a%d",', b'"b"]}'),
    (b'{"model":{"type":"BPE","vocab":{', b'"a":1,', b'"b":2},"merges":[]}}'),
    (b'{"heed":{"tokenizer":"word"},"pieces":[', b'"a",', b'"b"]}'), (b"", b"[", b""),
    (b'{"model":{"type":"BPE","vocab":{},"merges":[', b'"a b",', b'"c d"]}}'),
]  # fmt: skip
NUMPY = b"\x93NUMPY\1\0\xff\xff"
SERVER = (HeedError, ApiError)


def header_of(folder: Path, data: bytes) -> object:
    """Read a safetensors file with this header and eight bytes of data."""
    return read_header(written(folder, "a.safetensors", len(data).to_bytes(8, "little") + data + bytes(8)))


PARSERS: dict[str, Parser] = {
    "html": Parser(partial(document, "a.html"), HTML),
    "txt": Parser(partial(document, "a.txt"), TEXT),
    "srt": Parser(partial(document, "a.srt"), SUBTITLES),
    "vtt": Parser(partial(document, "a.vtt"), [(b"WEBVTT\n\n" + begin, part, end) for begin, part, end in SUBTITLES]),
    "md": Parser(partial(document, "a.md"), MARKDOWN),
    "po": Parser(partial(document, "a.po"), CATALOGUE),
    "json document": Parser(partial(document, "a.json"), STRINGS),
    "docx": Parser(partial(document, "a.docx"), WORD),
    "odt": Parser(partial(document, "a.odt"), OPEN),
    "pptx": Parser(partial(document, "a.pptx"), [(b"<a>", b"<b/>", b"</a>")]),
    "xlsx": Parser(partial(document, "a.xlsx"), CELLS),
    "xliff": Parser(partial(document, "a.xliff"), UNITS),
    "yaml": Parser(partial(document, "a.yaml"), YAML),
    "csv document": Parser(partial(document, "a.csv"), ROWS),
    "tsv document": Parser(partial(document, "a.tsv"), TABS),
    "tmx document": Parser(partial(document, "a.tmx"), XML),
    "csv": Parser(partial(records, "a.csv"), ROWS),
    "tsv": Parser(partial(records, "a.tsv"), TABS),
    "jsonl": Parser(partial(records, "a.jsonl"), [(b"", b'{"src":"a","tgt":"b"}\n', b""), *LOG]),
    "tmx": Parser(partial(records, "a.tmx"), XML),
    "lines": Parser(partial(lines, "a"), TEXT),
    "gz": Parser(partial(lines, "a.gz"), PACKED),
    "xz": Parser(partial(lines, "a.xz"), PACKED),
    "zst": Parser(partial(lines, "a.zst"), PACKED),
    "heed": Parser(compressed_by_heed, CODED),
    "json body": Parser(bodies, [(b'{"text":"a","target":"de","keep":[', b'"a",', b'"a"]}'), *OBJECTS], SERVER),
    "json fields": Parser(
        partial(form, JSON), [(b'{"source":"en","target":"de","q":[', b'"a",', b'"a"]}'), *OBJECTS], SERVER
    ),
    "urlencoded form": Parser(partial(form, URLENCODED), FIELDS, SERVER),
    "multipart form": Parser(partial(form, f"{MULTIPART}; boundary=x"), PARTS, SERVER),
    "tokenizer": Parser(partial(in_file, "tokenizer.json", load_tokenizer), PIECES),
    "recipe": Parser(partial(in_file, "recipe.toml", recipe), TOML),
    "arpa": Parser(partial(in_file, "a.arpa", read_arpa), ENTRIES),
    "safetensors": Parser(header_of, TENSORS),
    "manifest": Parser(partial(resealed, "manifest.json", read_digests), [*LISTED, *SEALED]),
    "checkpoint manifest": Parser(partial(resealed, "manifest.json", checkpoint), [*SAVED, *SEALED]),
    "store manifest": Parser(partial(in_folder, "manifest.json", store), [*STORED, *SEALED]),
    "metrics log": Parser(partial(in_folder, "metrics.jsonl", read_metrics), LOG),
    "score log": Parser(partial(in_run, "scores.jsonl", read_scores), LOG),
    "validation lines": Parser(partial(in_folder, "data/valid.jsonl", read_valid), [(b"", b'["a","b"]\n', b""), *LOG]),
    "corpus facts": Parser(partial(in_run, "data/corpus.json", lambda run: run.corpus), OBJECTS),
    "validation results": Parser(
        partial(in_run, "validation.json", lambda run: read_analysis(run, 1)), [*SCORED, *OBJECTS]
    ),
    "word counts": Parser(
        partial(in_run, "data/words.json", lambda run: WordCounts.read(run.files, "data/words.json")),
        [numbered(b'{"tokenizer":"13a","counts":{', b'"a%d":1,', b'"b":2}}'), *OBJECTS],
    ),
    "line hashes": Parser(
        partial(in_run, "data/hashes/tgt.npy", lambda run: LineHashes.open(run.files, "data/hashes")),
        [stored_hashes, (NUMPY, b"[", b"\n"), (NUMPY, b"-", b"1\n"), (NUMPY, b"a", b"\n")],
    ),
    "confidence": Parser(partial(in_folder, "confidence.json", Confidence.read), [*CALIBRATED, *OBJECTS]),
    "glossary": Parser(partial(in_file, "a.tsv", glossary), [(b"", b"a\tb\n", b""), *TABS]),
}


def office(main: str, data: bytes) -> bytes:
    """An office document with this main part."""
    return packed({main: data})


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress,
    "docx": partial(office, "word/document.xml"), "odt": partial(office, "content.xml"),
    "pptx": partial(office, "ppt/slides/slide1.xml"), "xlsx": partial(office, "xl/sharedStrings.xml"),
}  # fmt: skip
"""What growing inputs of a parser are packed by."""


def grown(name: str, sample: Sample, times: int) -> bytes:
    """An input with so many parts."""
    content = sample(times) if callable(sample) else sample[0] + sample[1] * times + sample[2]
    return PACK.get(name, bytes)(content)


COMPILED = {
    "heed", "json body", "json fields", "store manifest", "corpus facts", "word counts",
    "line hashes", "confidence", "multipart form",
}  # fmt: skip
"""Parsers that read what grows in a few calls, of a library."""


assert {f".{name.removesuffix(' document')}" for name in PARSERS} >= set(FORMATS) - {
    ".htm",
    ".pot",
    ".arb",
    ".xlf",
    ".yml",
}
assert set(PARSERS) >= set(RECORD_READERS) - {"parquet"}  # a library's, which needs whole files
