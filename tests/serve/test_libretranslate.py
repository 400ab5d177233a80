"""LibreTranslate's API: requests and answers that its clients rely on."""

from __future__ import annotations

import io
import json
import shutil
import urllib.error
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from libretranslatepy import LibreTranslateAPI
from serving import REQUEST, SENTENCE, Live, Runs, serving

import heed
from heed.documents.formats import FORMATS
from heed.memory.shared import SharedMemory
from heed.tasks.predictor import Predictor
from heed.text.language.identify import Detected as Guess

JSON = {"Content-Type": "application/json"}


def translated(loaded: list[Predictor], *lines: str) -> list[str]:
    """Translations by the first model without a server."""
    return loaded[0].translate(lines)


def multipart(fields: dict[str, str], name: str, data: bytes) -> tuple[bytes, dict[str, str]]:
    """A form with a file."""
    border, out = uuid.uuid4().hex, io.BytesIO()
    for field, value in fields.items():
        out.write(f'--{border}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode())
    out.write(f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode())
    out.write(data + f"\r\n--{border}--\r\n".encode())
    return out.getvalue(), {"Content-Type": f"multipart/form-data; boundary={border}"}


def file_translated(live: Live, name: str, data: bytes, more: dict[str, str] | None = None) -> bytes:
    """The translation of a file, downloaded as clients do."""
    body, head = multipart({"source": "en", "target": "de", **(more or {})}, name, data)
    answer = live.ask("POST", "/translate_file", body, head)
    assert answer.status == 200, answer.body
    url = answer.json["translatedFileUrl"]
    assert url.startswith(live.url + "/download_file/")
    fetched = live.get(url.removeprefix(live.url))
    assert fetched.headers["content-disposition"].startswith("attachment;")
    return fetched.body


# The official client


def test_the_python_client_translates_detects_and_lists(live: Live, loaded: list[Predictor]) -> None:
    client = LibreTranslateAPI(live.url + "/")
    assert client.translate(SENTENCE, "en", "de") == translated(loaded, SENTENCE)[0]
    assert [language["code"] for language in client.languages()] == ["en", "de", "fr"]
    assert {answer["language"] for answer in client.detect("kan ler mis")} <= {"en", "de", "fr"}


def test_the_python_client_gets_an_error_for_an_unknown_language(live: Live) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        LibreTranslateAPI(live.url + "/").translate(SENTENCE, "en", "zz")
    assert error.value.code == 400
    assert json.loads(error.value.read()) == {"error": "zz is not supported"}


# /detect


def test_one_language_at_least_is_detected(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live.service.detector, "detect", lambda text: [Guess("en", 0.0), Guess("de", 0.0)])
    assert live.post("/detect", {"q": "你好"}).json == [{"language": "en", "confidence": 0.0}]


# /translate


def test_one_text_or_several(live: Live, loaded: list[Predictor]) -> None:
    one = live.post("/translate", {"q": SENTENCE, "source": "en", "target": "de"})
    assert one.json == {"translatedText": translated(loaded, SENTENCE)[0], "model": "en-de"}
    texts = [SENTENCE, "fo gu", "", "  \n", "🙂 🙂", SENTENCE]
    several = live.post("/translate", {"q": texts, "source": "en", "target": "de"})
    first, second = translated(loaded, SENTENCE, "fo gu")
    assert several.json == {"translatedText": [first, second, "", "  \n", "🙂 🙂", first], "model": ["en-de"] * 6}


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_forms_are_accepted(live: Live, loaded: list[Predictor], kind: str) -> None:
    if kind.startswith("multipart"):
        fields = {"q": SENTENCE, "source": "en", "target": "de"}
        body = "".join(f'--x\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in fields.items())
        body += "--x--\r\n"
    else:
        body = "q=ba+ce+di&source=en&target=de"
    answer = live.ask("POST", "/translate", body.encode(), {"Content-Type": kind})
    assert answer.json == {"translatedText": translated(loaded, SENTENCE)[0], "model": "en-de"}


def test_alternatives_differ_from_the_translation(live: Live, loaded: list[Predictor]) -> None:
    answer = live.post("/translate", {"q": SENTENCE, "source": "en", "target": "de", "alternatives": 3}).json
    [best] = loaded[0].hypotheses(
        [SENTENCE], loaded[0].run.recipe.decoding.model_copy(update={"beam_size": 4, "nbest": 4})
    )
    assert answer["translatedText"] == best.text
    assert answer["alternatives"] == [other.text for other in best.alternatives][:3]
    assert best.text not in answer["alternatives"]
    several = live.post("/translate", {"q": [SENTENCE, "1"], "source": "en", "target": "de", "alternatives": 1}).json
    assert [len(each) for each in several["alternatives"]] == [1, 0]


def test_auto_reports_the_detected_language(live: Live, loaded: list[Predictor]) -> None:
    answer = live.post("/translate", {"q": SENTENCE, "source": "auto", "target": "de"}).json
    assert answer["translatedText"] == translated(loaded, SENTENCE)[0]
    assert answer["detectedLanguage"]["language"] == "en"
    assert 50 < answer["detectedLanguage"]["confidence"] <= 100
    several = live.post("/translate", {"q": [SENTENCE, "kan ler mis"], "source": "auto", "target": "de"}).json
    assert [result["language"] for result in several["detectedLanguage"]] == ["en", "de"]
    assert several["translatedText"][1] == "kan ler mis", "it is already in the target language"


def test_a_text_is_translated_through_a_third_language(live: Live, loaded: list[Predictor]) -> None:
    answer = live.post("/translate", {"q": SENTENCE, "source": "en", "target": "fr"}).json
    assert answer["translatedText"] == loaded[1].translate(translated(loaded, SENTENCE))[0]
    assert live.get("/languages").json == [
        {"code": "en", "name": "English", "targets": ["en", "de", "fr"]},
        {"code": "de", "name": "German", "targets": ["de", "fr"]},
        {"code": "fr", "name": "French", "targets": ["fr"]},
    ]


def test_a_language_that_is_only_a_target_translates_only_to_itself(live: Live) -> None:
    api = LibreTranslateAPI(f"{live.url}/")
    [french] = [each for each in api.languages() if each["code"] == "fr"]
    assert french["name"] == "French"
    for target in french["targets"]:
        assert api.translate(SENTENCE, "fr", target) == SENTENCE
    refused = live.post("/translate", {"q": SENTENCE, "source": "fr", "target": "en"})
    assert (refused.status, refused.json) == (
        400, {"error": "English (en) is not available as a target language from French (fr)"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def nameless(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server of a run that does not name its languages."""
    folder = tmp_path_factory.mktemp("nameless") / "run"
    shutil.copytree(runs.translator, folder, ignore=shutil.ignore_patterns("checkpoints"))
    recipe = (folder / "recipe.toml").read_text(encoding="utf-8")
    recipe = recipe.replace('src_lang = "en"', 'src_lang = ""').replace('tgt_lang = "de"', 'tgt_lang = ""')
    (folder / "recipe.toml").write_text(recipe, encoding="utf-8")
    with serving([heed.load(folder)]) as server:
        yield server


def test_languages_without_names_have_codes_that_clients_can_use(nameless: Live, loaded: list[Predictor]) -> None:
    api = LibreTranslateAPI(f"{nameless.url}/")
    assert [(each["code"], each["targets"]) for each in api.languages()] == [("src", ["src", "tgt"]), ("tgt", ["tgt"])]
    [expected] = translated(loaded, SENTENCE)
    assert api.translate(SENTENCE, "src", "tgt") == api.translate(SENTENCE, "auto", "tgt") == expected
    assert api.detect(SENTENCE)[0]["language"] == "src"
    assert nameless.get("/frontend/settings").json["language"]["target"]["code"] == "tgt"
    with pytest.raises(urllib.error.HTTPError) as error:
        api.translate(SENTENCE, "", "tgt")
    assert json.loads(error.value.read()) == {"error": "Invalid request: missing source parameter"}


def test_an_element_in_any_language_is_translated_where_that_of_the_model_has_no_name(nameless: Live) -> None:
    """As by `heed translate-file`: without a name, nobody knows that the element is in another language."""
    texts = ("<p>ba ce</p>", '<p lang="en">ba ce</p>')
    plain, named = nameless.post("/translate", {"q": texts, "source": "src", "target": "tgt", "format": "html"}).json[
        "translatedText"
    ]
    assert "ba ce" not in plain
    assert named.partition(">")[2] == plain.partition(">")[2]


def test_white_space_lines_and_paragraphs_are_kept(live: Live, loaded: list[Predictor]) -> None:
    text = " ba ce.  Di fo!\n\n\tGu ha?\r\n12, 3.\n  "
    answer = live.post("/translate", {"q": text, "source": "en", "target": "de"}).json["translatedText"]
    first, second, third = translated(loaded, "ba ce.", "Di fo!", "Gu ha?")
    assert answer == f" {first}  {second}\n\n\t{third}\r\n12, 3.\n  "


def test_markup_is_kept(live: Live, loaded: list[Predictor]) -> None:
    text = '<p class="a">ba ce</p>\n<pre>ba  ce</pre><ul><li>di &amp; fo<li translate="no">gu</ul><!-- x -->'
    answer = live.post("/translate", {"q": text, "source": "en", "target": "de", "format": "html"}).json[
        "translatedText"
    ]
    first, second = translated(loaded, "ba ce", "di & fo")
    second = second.replace("&", "&amp;").replace("<", "&lt;")
    expected = f'<p class="a">{first}</p>\n<pre>ba  ce</pre><ul><li>{second}<li translate="no">gu</ul><!-- x -->'
    assert answer == expected


def test_tags_inside_a_sentence_move_with_their_words(live: Live) -> None:
    text = 'ba <a href="/x?a=1&amp;b=2">ce <b>di</b></a> fo<br/>gu'
    answer = live.post("/translate", {"q": text, "source": "en", "target": "de", "format": "html"}).json[
        "translatedText"
    ]
    for tag in ('<a href="/x?a=1&amp;b=2">', "</a>", "<b>", "</b>", "<br/>"):
        assert answer.count(tag) == 1
    assert answer.index("<a") < answer.index("<b>") < answer.index("</b>") < answer.index("</a>")


def test_placeholders_and_addresses_are_kept(live: Live) -> None:
    text = "ba {name} ce %s di https://example.org/a?b=c, fo {{ x }} gu a.b@example.org!"
    answer = live.post("/translate", {"q": text, "source": "en", "target": "de"}).json["translatedText"]
    for placeholder in ("{name}", "%s", "https://example.org/a?b=c", "{{ x }}", "a.b@example.org"):
        assert answer.count(placeholder) == 1, answer


def test_a_glossary_and_kept_terms_are_obeyed(live: Live) -> None:
    body = {"q": "ba ce fo", "source": "en", "target": "de", "glossary": {"ce": "zebra"}, "keep": ["fo"]}
    words = live.post("/translate", body).json["translatedText"].split()
    assert "zebra" in words
    assert "fo" in words
    through = live.post("/translate", {**body, "target": "fr"}).json["translatedText"].split()
    assert {"zebra", "fo"} <= {*through}


@pytest.mark.parametrize("keep", ["fo\n", "fo\r\ndi\r\n", "\n\nfo", "di\nfo\n \n"])
def test_kept_terms_may_be_lines_of_a_text(live: Live, keep: str) -> None:
    answer = live.post("/translate", {**REQUEST, "q": "ba ce fo", "keep": keep})
    assert answer.status == 200, answer.json
    assert "fo" in answer.json["translatedText"].split()


def test_a_glossary_is_obeyed_in_a_sentence_with_a_placeholder(live: Live) -> None:
    body = {"q": "ba {name} ce fo", "source": "en", "target": "de", "glossary": {"ce": "zebra"}}
    answer = live.post("/translate", body).json["translatedText"]
    assert answer.count("{name}") == 1
    assert "zebra" in answer.split()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"source": None}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"source": "zz"}, "zz is not supported"),
        ({"target": ["de"]}, "['de'] is not supported"),
        ({"format": "xml"}, "xml format is not supported"),
        ({"q": "x" * 10_001}, "Invalid request: request (10001) exceeds text limit (10000)"),
        ({"q": ["x"] * 129}, "Invalid request: request (129) exceeds batch limit (128)"),
        ({"alternatives": "many"}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": 11}, "Invalid request: alternatives parameter must be >= 0 and <= 10"),
        ({"source": "fr", "target": "en"}, "English (en) is not available as a target language from French (fr)"),
        ({"q": [1]}, "Invalid request: q parameter is not a text or an array of texts"),
        ({"glossary": [1]}, "Invalid request: glossary parameter is not an object of texts, at most 1000"),
    ],
)
def test_invalid_requests_get_the_messages_of_libretranslate(live: Live, changes: dict[str, Any], message: str) -> None:
    body = {"q": SENTENCE, "source": "en", "target": "de", **changes}
    answer = live.post("/translate", {name: value for name, value in body.items() if value is not None})
    assert (answer.status, answer.json) == (400, {"error": message})


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"x"', b"[" * 9_000])
def test_a_body_that_is_not_a_json_object_is_refused(live: Live, body: bytes) -> None:
    answer = live.post("/translate", body)
    assert (answer.status, answer.json) == (400, {"error": "Invalid JSON format"})


def test_a_body_in_another_encoding_is_refused(live: Live) -> None:
    answer = live.post("/translate", b"\xff")
    assert (answer.status, answer.json) == (400, {"error": "The JSON is not valid Unicode."})


def test_an_unpaired_surrogate_is_accepted(live: Live) -> None:
    answer = live.post("/translate", b'{"q": "ba \\ud800 ce", "source": "en", "target": "de"}')
    assert answer.status == 200


# The other routes


def test_suggestions_are_disabled(live: Live) -> None:
    answer = live.post("/suggest", {"q": "a", "s": "b", "source": "en", "target": "de"})
    assert (answer.status, answer.json) == (403, {"error": "Suggestions are disabled on this server."})


def test_settings_have_the_fields_that_libretranslates_page_needs(live: Live) -> None:
    answer = live.get("/frontend/settings").json
    assert answer.keys() >= {
        "charLimit",
        "frontendTimeout",
        "apiKeys",
        "keyRequired",
        "suggestions",
        "filesTranslation",
    }
    assert answer["supportedFilesFormat"] == [*FORMATS]
    assert {".txt", ".docx", ".po"} <= {*FORMATS}
    assert answer["language"]["source"] == {"code": "auto", "name": "Auto Detect"}


def test_the_body_of_a_get_request_is_ignored(live: Live) -> None:
    assert live.ask("GET", "/languages", b"{}", JSON).status == 200


def test_files_keep_their_format(live: Live, loaded: list[Predictor]) -> None:
    first, second = translated(loaded, "ba ce.", "di fo")
    assert (
        file_translated(live, "a.txt", b"\xef\xbb\xbfba ce.\r\n\r\n di fo\n").decode()
        == f"\ufeff{first}\r\n\r\n {second}\n"
    )
    table = b"id;source\r\n1;ba ce.\r\n2;\r\n"
    assert file_translated(live, "a.csv", table).decode() == f"id;source;target\r\n1;ba ce.;{first}\r\n2;;\r\n"
    columns = {"src_column": "2", "tgt_column": "3"}
    assert file_translated(live, "a.tsv", b"x y\tdi fo\t\n", columns).decode() == f"x y\tdi fo\t{second}\n"
    assert file_translated(live, "a.html", b"<p>ba ce.</p>").decode() == f"<p>{first}</p>"


def test_the_link_to_a_file_begins_with_the_url_that_clients_use(loaded: list[Predictor]) -> None:
    body, head = multipart({"source": "en", "target": "de"}, "a.txt", b"ba ce.")
    head |= {"X-Forwarded-Proto": "gopher", "X-Forwarded-Host": "evil.example", "Forwarded": "proto=gopher"}
    for public_url in ("", "https://translate.example/heed/"):
        with serving(loaded[:1], public_url=public_url) as live:
            url = live.ask("POST", "/translate_file", body, head).json["translatedFileUrl"]
            path = url.removeprefix(public_url or f"{live.url}/")
            assert path.startswith("download_file/")
            assert live.get(f"/{path}").status == 200


def test_a_downloaded_file_has_the_letters_of_its_name(live: Live) -> None:
    body, head = multipart({"source": "en", "target": "de"}, "письмо 1.txt", b"ba ce.")
    url = live.ask("POST", "/translate_file", body, head).json["translatedFileUrl"]
    found = live.get(url.removeprefix(live.url)).headers["content-disposition"]
    title = "%D0%BF%D0%B8%D1%81%D1%8C%D0%BC%D0%BE%201.de.txt"
    assert found == f"attachment; filename=\"_1.de.txt\"; filename*=UTF-8''{title}"


def test_the_source_language_of_a_bilingual_memory_is_detected(live: Live, loaded: list[Predictor]) -> None:
    """Most of its text is in the target language."""
    [output], german = translated(loaded, "ba ce"), "der die das und ist nicht ein"
    done = "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in (("en", "fo"), ("de", german)))
    units = f'<tu><tuv xml:lang="en"><seg>ba ce</seg></tuv></tu>{f"<tu>{done}</tu>" * 3}'
    data = f"<tmx><body>{units}</body></tmx>".encode()
    body, head = multipart({"source": "auto", "target": "de"}, "m.tmx", data)
    url = live.ask("POST", "/translate_file", body, head).json["translatedFileUrl"]
    answer = live.get(url.removeprefix(live.url)).body.decode()
    assert f'<tuv xml:lang="de" creationid="heed"><seg>{output}</seg></tuv></tu>' in answer
    assert answer.count("creationid") == 1


def test_subtitles_keep_numbers_times_and_lines(live: Live) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,500\nba ce\ndi fo\n\n2\n00:00:03,000 --> 00:00:04,000\n<i>gu ha</i>\n"
    lines = file_translated(live, "a.srt", text.replace("\n", "\r\n").encode()).decode().split("\r\n")
    assert [lines[0], lines[1], lines[4], lines[5], lines[6]] == [
        "1", "00:00:01,000 --> 00:00:02,500", "", "2", "00:00:03,000 --> 00:00:04,000",
    ]  # fmt: skip
    assert lines[2]
    assert lines[3]
    assert lines[7].startswith("<i>")
    assert lines[7].endswith("</i>")


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def test_a_word_document_in_an_unknown_language_is_translated(live: Live, loaded: list[Predictor]) -> None:
    packed = io.BytesIO()
    body = f'<w:d xmlns:w="{WORD}"><w:p><w:r><w:t>{SENTENCE}</w:t></w:r></w:p></w:d>'
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("word/document.xml", body)
    done = file_translated(live, "a.docx", packed.getvalue(), {"source": "auto"})
    with zipfile.ZipFile(io.BytesIO(done)) as archive:
        assert archive.read("word/document.xml").decode() != body
    body_of, head = multipart({"source": "auto", "target": "de"}, "a.docx", b"PK\3\4")
    assert live.ask("POST", "/translate_file", body_of, head).status == 400


@pytest.mark.parametrize("name", ["a.exe", "a", "../../etc/passwd", "a.txt/.."])
def test_other_files_are_refused(live: Live, name: str) -> None:
    body, head = multipart({"source": "en", "target": "de"}, name, b"ba")
    answer = live.ask("POST", "/translate_file", body, head)
    assert answer.status == 400
    assert "is not supported" in answer.json["error"]


def test_file_names_cannot_lead_to_other_files(live: Live) -> None:
    body, head = multipart({"source": "en", "target": "de"}, '../../x\\..\\y z".txt', b"ba")
    url = live.ask("POST", "/translate_file", body, head).json["translatedFileUrl"]
    assert "/" not in url.rpartition("/download_file/")[2]
    for name in ("nothing", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "..\\..\\x"):
        assert live.get(f"/download_file/{name}").status == 404


def test_a_model_from_a_language_to_itself_is_used(runs: Runs, tmp_path: Path) -> None:
    """Such as one that corrects spelling. Without one, a text in the target language comes back unchanged."""
    folder = tmp_path / "spelling"
    shutil.copytree(runs.translator, folder)
    recipe = (folder / "recipe.toml").read_text(encoding="utf-8")
    (folder / "recipe.toml").write_text(recipe.replace('tgt_lang = "de"', 'tgt_lang = "en"'), encoding="utf-8")
    with serving([heed.load(folder)], memory=SharedMemory(tmp_path / "team.memory")) as server:
        expected = heed.load(folder).translate([SENTENCE])[0]
        assert expected != SENTENCE
        for source in ("en", "auto"):
            answer = server.post("/translate", {"q": SENTENCE, "source": source, "target": "en"}).json
            assert (answer["translatedText"], answer["model"]) == (expected, "spelling")
            assert server.post("/api/translate", {"text": SENTENCE, "source": source}).json["text"] == expected
        assert server.get("/languages").json == [{"code": "en", "name": "English", "targets": ["en"]}]
        assert server.get("/api/models").json["languages"][0]["targets"] == ["en"]
        suggested = {"q": SENTENCE, "s": "von Hand", "source": "en", "target": "en"}
        assert server.post("/suggest", suggested).status == 200
        assert server.post("/translate", {"q": SENTENCE, "source": "en", "target": "en"}).json["fromMemory"] is True
