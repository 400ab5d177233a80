"""The task of captioning on toy images: preparation, training, exact resume, use and scores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command import call
from random_models import model_of, random_images
from toy_images import TINY, encoded, keys_of, scenes, write_scenes, write_tar
from wrong_arguments import refuses_wrong_tops

import heed
from heed.core.errors import DataError, UsageError
from heed.data.batch import divided
from heed.data.image_store import ImageStore
from heed.data.store import TokenStore
from heed.data.validation import read_valid
from heed.decoding.options import SearchOptions
from heed.evaluation.outputs import System
from heed.evaluation.test_set import HeldOut
from heed.nn.contract import Smoothing
from heed.nn.dropout_keys import DropoutKeys
from heed.run import Run
from heed.tasks.captioning.batches import caption_batch, caption_loss, joined, split
from heed.tasks.captioning.data import CaptionTable
from heed.tasks.captioning.evaluate import evaluate_captions, read_test

SCENES = 100


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captions and images of toy scenes."""
    return write_scenes(tmp_path_factory.mktemp("scenes"), SCENES)


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained captioning run."""
    folder = tmp_path_factory.mktemp("captioning") / "run"
    heed.train(keys_of(data), folder, quiet=True)
    return folder


# Preparation


def test_images_are_held_out_with_all_their_captions(run: Path) -> None:
    train, valid = (ImageStore.open(run / "data" / f"{part}-images") for part in ("train", "valid"))
    assert not {*train.names} & {*valid.names}
    store, tokenizer = TokenStore.open(run / "data" / "train"), Run(run).tokenizers["tgt"]
    expected = {name: captions for name, _, captions in scenes(SCENES)}
    for row, name in enumerate(train.names):
        ids = [ids.tolist() for ids in split(store.row("tgt", row))]
        assert tuple(tokenizer.decode(ids)) == expected[name]
    assert [expected[name] for name in valid.names] == read_valid(run)
    corpus = json.loads((run / "data" / "corpus.json").read_text())
    assert (corpus["num_rows"], corpus["num_valid"]) == (len(train), len(valid))
    assert corpus["files"]["images"]["lines"] == SCENES


def test_the_parts_of_a_table_divide_it(tmp_path: Path) -> None:
    write_scenes(tmp_path, 60, parts=["train", "train", "dev", "test"])
    heed.train(
        {**keys_of(tmp_path), "training.max_steps": 1, "data.max_shift": 0}, tmp_path / "run", force=True, quiet=True
    )
    names = [name for name, _, _ in scenes(60)]
    train, valid = (ImageStore.open(tmp_path / "run" / "data" / f"{part}-images") for part in ("train", "valid"))
    same = {encoded(image) for _, image, _ in list(scenes(60))[2::4]}
    kept = [name for index, (name, image, _) in enumerate(scenes(60)) if index % 4 < 2 and encoded(image) not in same]
    assert (list(valid.names), list(train.names)) == (names[2::4], kept), "and no image is in both"


def test_an_image_of_the_validation_data_is_not_trained_on(tmp_path: Path) -> None:
    pictures = {name: (encoded(image), captions) for name, image, captions in scenes(60, seed=3)}
    twin = encoded(next(iter(scenes(1, seed=9)))[1])
    rows = ["image\tsplit\tcaption", *(f"{name}\ttrain\t{captions[0]}" for name, (_, captions) in pictures.items())]
    rows += ["same.png\ttrain\ta twin", "valid.png\tdev\ta twin"]
    (tmp_path / "captions.tsv").write_text("\n".join(rows) + "\n")
    members = [(name, content) for name, (content, _) in pictures.items()]
    write_tar(tmp_path / "images.tar", [*members, ("same.png", twin), ("valid.png", twin)])
    heed.train({**keys_of(tmp_path), "training.max_steps": 1}, tmp_path / "run", quiet=True)
    assert "same.png" not in ImageStore.open(tmp_path / "run" / "data" / "train-images").names
    assert Run(tmp_path / "run").corpus["dropped"]["the image is in the validation data too"] >= 1


def test_captions_of_a_row_are_joined_and_split_again() -> None:
    captions = [[5, 6], [7], [8, 9, 4]]
    assert [ids.tolist() for ids in split(joined(captions))] == captions


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("image\tcaption\n", DataError, "x.tsv has no captions."),
        ("a\tb\n1\t2\n", UsageError, "x.tsv has no column called image or image_name or"),
        ("image\tcaption\n\ta dog\n", DataError, "x.tsv:2: no image is named in the column 'image'."),
        ("image\tcaption\na.png\n", DataError, "x.tsv:2: 1 column, but the first row names 2 ('image', 'caption')."),
        (
            "image\tsplit\tcaption\na.png\ttrain\tx\na.png\ttest\ty\n", DataError,
            "x.tsv:3: the image 'a.png' is in 'train' above and in 'test' here; all captions of an image must be in",
        ),
        ("image\tcaption\tcaption\na.png\tx\ty\n", DataError, "x.tsv:1: 2 columns are called 'caption'. Give each a"),
        ("image\tsplit\tcaption\na.png\tnew\tx\n", DataError, "x.tsv:2: the part is 'new'; it must be train, dev or"),
    ],
)  # fmt: skip
def test_a_table_that_is_wrong_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, error: type[Exception], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.tsv").write_text(content)
    with pytest.raises(error) as raised:
        CaptionTable.read("x.tsv")
    assert str(raised.value).startswith(message)


def test_tables_of_other_formats_and_columns_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('file,Caption\na.png,"A dog, running."\na.png,A dog.\n')
    (tmp_path / "b.jsonl").write_text(
        '{"pic": "a.png", "says": "A dog, running."}\n{"pic": "a.png", "says": "A dog."}\n'
    )
    tables = CaptionTable.read(tmp_path / "a.csv"), CaptionTable.read(tmp_path / "b.jsonl", ("pic", "says", ""))
    for table in tables:
        [captioned] = table.all
        assert (captioned.image, captioned.captions) == ("a.png", ("A dog, running.", "A dog."))
    with pytest.raises(DataError, match=r"has no column 'text'; it has 'file', 'Caption'"):
        CaptionTable.read(tmp_path / "a.csv", ("", "text", ""))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"image": "a.png", "captions": ["A dog, running.", " ", null, "A dog."], "ids": [1, 2]}\n'
                    '{"image": "b.png", "captions": "A cat."}\n{"image": "a.png", "captions": ["One dog."]}\n'
                    '{"image": "c.png", "captions": []}\n{"image": "d.png", "captions": null}\n'),
        ("a.csv", 'image,caption\na.png,"[""A dog, running."", ""A dog.""]"\nb.png,"[ ""A cat."",null]"\n'
                  "a.png,One dog.\nc.png,[]\n"),
    ],
)  # fmt: skip
def test_a_list_of_captions_counts_as_a_row_for_each(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    captions = {each.image: each.captions for each in CaptionTable.read(tmp_path / name).all}
    assert captions == {"a.png": ("A dog, running.", "A dog.", "One dog."), "b.png": ("A cat.",)}


def test_columns_without_a_name_are_no_parts(tmp_path: Path) -> None:
    """Other programs write the numbers of the rows into such a column."""
    (tmp_path / "a.csv").write_text(",image,caption,\n0,a.png,A dog.,0\n1,b.png,A cat.,1\n")
    table = CaptionTable.read(tmp_path / "a.csv")
    assert {part: len(images) for part, images in table.parts.items()} == {"train": 2}


def test_a_caption_in_brackets_that_is_no_list_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('image\tcaption\na\t["Stop" it says]\nb\t[a dog]\n')
    table = CaptionTable.read(tmp_path / "a.tsv")
    assert [each.captions for each in table.all] == [('["Stop" it says]',), ("[a dog]",)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('"image": "b", "caption": {"raw": "y"}', "the column 'caption' is an object; it must be text."),
        ('"image": "b", "caption": ["y", {"raw": "y"}]', "the column 'caption' is a list with an object; it must be"),
        ('"image": 7, "caption": "y"', "the column 'image' is a number; it must be text."),
    ],
)
def test_a_field_that_is_no_text_is_refused_with_its_line(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"image": "a", "caption": "x"}\n{' + row + "}\n")
    with pytest.raises(DataError, match=f"a.jsonl:2: {message}"):
        CaptionTable.read(tmp_path / "a.jsonl")


def test_parts_of_some_rows_only_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"image": "a", "caption": "x", "split": null}\n{"image": "b", "caption": "y", "split": "test"}\n')
    with pytest.raises(DataError, match=r"a.jsonl:2: the row has a part, in the column 'split', and the rows above"):
        CaptionTable.read(path)


def test_lists_of_captions_are_trained_on_and_scored_like_rows(tmp_path: Path, data: Path, run: Path) -> None:
    rows = [{"image": name, "captions": list(captions)} for name, _, captions in scenes(SCENES)]
    (tmp_path / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = {**keys_of(data), "data.captions": str(tmp_path / "lists.jsonl"), "training.max_steps": 1}
    heed.train(keys, tmp_path / "run", quiet=True)
    stores = [TokenStore.open(folder / "data" / "train") for folder in (run, tmp_path / "run")]
    of_run, of_lists = ([store.row("tgt", row).tolist() for row in range(len(store))] for store in stores)
    assert of_lists == of_run
    tests = [
        read_test(path, data / "images.tar", ("", "", ""), quiet=True)
        for path in (data / "captions.tsv", tmp_path / "lists.jsonl")
    ]
    assert tests[0].captioned == tests[1].captioned


# Training


@pytest.mark.parametrize("name", ["show_attend_tell", "show_attend_tell, hard", "image_transformer"])
def test_the_loss_of_a_batch_is_that_of_its_halves(name: str) -> None:
    model, ids = model_of(name), [[[5, 6, 7], [4]], [[8, 9]], [[3, 4, 5, 6]], [[7], [8], [9, 3]]]
    batch = caption_batch(random_images(4).pixels.numpy(), ids, [3, 1, 4, 2])

    def gradients(*parts: Any) -> list[torch.Tensor]:
        keys = [DropoutKeys.for_step(1, 2, part.rows) for part in parts]
        losses = [caption_loss(model, part, Smoothing(), key, 1.5) for part, key in zip(parts, keys, strict=True)]
        assert sum(part.num_targets for part in parts) == 21
        return list(torch.autograd.grad(sum(loss.loss_sum for loss in losses), list(model.parameters())))

    for whole, cut in zip(gradients(batch), gradients(*divided(batch, 2)), strict=True):
        torch.testing.assert_close(whole, cut, rtol=1e-3, atol=1e-4)


def test_an_interrupted_training_of_hard_attention_ends_in_the_same_weights(data: Path, tmp_path: Path) -> None:
    hard = {**keys_of(data), "model.attention": "hard", "training.max_steps": 12, "training.save_every": 5}
    heed.train(hard, tmp_path / "whole", quiet=True)
    heed.train({**hard, "training.max_steps": 7}, tmp_path / "cut", quiet=True)
    assert call("train", "--resume", tmp_path / "cut", "--max-steps", "12", "--quiet").code == 0
    weights = [Run(tmp_path / name).weights() for name in ("whole", "cut")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


# Use


def test_a_trained_model_names_the_colour_and_mostly_the_shape(run: Path) -> None:
    unseen = list(scenes(40, seed=9))
    predictions = heed.load(run).predict([encoded(image) for _, image, _ in unseen])
    captions = [answers[0].text for answers in predictions]
    colours = [captions_of_scene[0].split()[1] for _, _, captions_of_scene in unseen]
    assert sum(colour in caption.split() for colour, caption in zip(colours, captions, strict=True)) >= 36
    assert sum(caption in own for caption, (_, _, own) in zip(captions, unseen, strict=True)) >= 26


def test_images_are_given_as_paths_or_bytes_and_neighbours_do_not_matter(run: Path, tmp_path: Path) -> None:
    predictor, pictures = heed.load(run), [image for _, image, _ in scenes(5, seed=8)]
    for number, image in enumerate(pictures):
        image.save(tmp_path / f"{number}.png")
    together = predictor.predict([encoded(image) for image in pictures], top=2)
    alone = [predictor.predict(tmp_path / f"{number}.png", top=2)[0] for number in range(5)]
    assert together == alone
    assert all(len({answer.text for answer in answers}) == 2 for answers in together)
    assert dict(predictor.caption_files(tmp_path)) == {f"{n}.png": [a[0]] for n, a in enumerate(predictor.predict(
        [str(tmp_path / f"{number}.png") for number in range(5)]
    ))}  # fmt: skip


def test_sampling_and_scores_use_the_common_search(run: Path) -> None:
    captioner = heed.load(run).captioner
    images = [heed.load(run).pixels(encoded(image)) for _, image, _ in scenes(3, seed=8)]
    options = SearchOptions(sample=True, nbest=3, max_tokens=8, seed=4)
    together, alone = captioner.caption(images, options), [captioner.caption([each], options)[0] for each in images]
    assert [each.text for each in together] == [each.text for each in alone]
    assert all(len(each.alternatives) == 2 for each in together)
    best = captioner.caption(images, SearchOptions(beam_size=1, max_tokens=8))
    scores = captioner.score_captions(images, [[each.text] for each in best])
    for hypothesis, [score] in zip(best, scores, strict=True):
        assert score.log_prob == pytest.approx(hypothesis.log_prob, abs=1e-4)


def test_the_command_line_captions_and_scores(run: Path, data: Path, tmp_path: Path) -> None:
    listed = call("predict", run, "--images", data / "images.tar", "--quiet")
    assert (listed.code, len(listed.lines)) == (0, SCENES), listed.err
    name, caption = listed.lines[0].split("\t")
    record = json.loads(call("predict", run, "--images", data / "images.tar", "--json", "--top", "2").lines[0])
    assert (record["input"], record["predictions"][0]["text"], len(record["predictions"])) == (name, caption, 2)
    refused = call("predict", run, "--images", data / "images.tar", "--probabilities")
    assert (refused.code, refused.out, "captions have no probabilities" in refused.err) == (2, "", True)
    copy = shutil.copytree(run, tmp_path / "run")
    write_scenes(tmp_path, 30, seed=5)
    scored = call(
        "evaluate", copy, "--captions", tmp_path / "captions.tsv", "--images", tmp_path / "images.tar", "--json"
    )
    assert scored.code == 0, scored.err
    own, *baselines = json.loads(scored.out)
    assert [each["system"] for each in baselines] == [
        "most frequent caption", "nearest image (pixels)", "nearest image (encoder)"
    ]  # fmt: skip
    assert [score["name"] for score in own["scores"]] == ["CIDEr-D", "BLEU", "chrF2"]
    assert own["scores"][0]["value"] > baselines[0]["scores"][0]["value"]
    assert set(baselines[0]["against_first"]) == {"cider", "bleu", "chrf"}
    known = call("evaluate", copy, "--captions", data / "captions.tsv", "--images", data / "images.tar", "--json")
    assert len(json.loads(known.out)[0]["leakage"]["lines"]) >= 80, "most of them were trained on"


def test_captions_are_compared_in_one_unicode_form() -> None:
    system = System("a", ["un caf\u00e9 noir", "deux chats"])
    test = HeldOut(("image",), [("1",), ("2",)], unit="image")
    [evaluation] = evaluate_captions(test, [["un cafe\u0301 noir"], ["deux chats"]], [system], [None], None)
    assert evaluation.scores["chrf"].value == 100


def test_a_model_that_is_not_usable_yet_is_named(run: Path, data: Path, tmp_path: Path) -> None:
    assert heed.load(run).not_usable == ""
    poor = shutil.copytree(run, tmp_path / "poor")
    scores = {"event": "validation", "step": 1, "best": True, "bleu": 0.4, "chrf": 2.0}
    (poor / "metrics.jsonl").write_text(json.dumps(scores) + "\n", encoding="utf-8")
    assert "BLEU 0.4 on validation: not usable yet" in call("predict", poor, "--images", data / "images.tar").err


def test_damaged_pixels_are_found_before_a_training_is_resumed(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    pixels = copy / "data" / "train-images" / "pixels.u8"
    content = np.fromfile(pixels, dtype=np.uint8)
    content[5] ^= 1
    content.tofile(pixels)
    resumed = call("train", "--resume", copy, "--max-steps", "70")
    assert resumed.code == 65
    assert "the checksum of pixels.u8 does not match" in resumed.err
    shown = call("info", copy, "--verify")
    assert shown.code == 65
    assert "data/train-images" in shown.out + shown.err


def test_the_report_shows_the_baselines_and_the_model(run: Path) -> None:
    report = (run / "report.md").read_text()
    assert "soft attention" in report
    assert "nearest image (pixels)" in report
    assert TINY["model.kind"] == "show_attend_tell"


# Wrong input


FORMATS = "JPEG, PNG, GIF, WEBP, BMP, TIFF, PPM"


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("x.png", b"no image", 65, f"x.png is not an image in a format that heed reads ({FORMATS})."),
        ("x.png", None, 66, "x.png does not exist."),
        ("x.tar", b"no archive", 65, "x.tar is not a tar archive, or it is damaged"),
    ],
)
def test_an_image_that_cannot_be_captioned_is_refused(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: bytes | None,
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)
    result = call("predict", run, "--images", name)
    assert (result.code, message in result.err) == (code, True), result.err


def test_images_before_a_broken_one_are_captioned(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heed.tasks.captioning.predictor.AT_ONCE", 2)
    good = [(name, encoded(image)) for name, image, _ in scenes(3)]
    place = write_tar(tmp_path / "x.tar", [*good, ("z.png", good[0][1][:60])])
    result = call("predict", run, "--images", place)
    assert (result.code, len(result.lines)) == (65, 2)
    assert f"{place}: z.png is damaged or incomplete" in result.err


def test_images_and_text_are_not_mixed_up(run: Path, data: Path) -> None:
    asked = call("predict", run, stdin=b"a dog\n")
    assert (asked.code, "captions images: give --images F, a file, a folder or a .tar." in asked.err) == (2, True)
    half = call("evaluate", run, "--captions", data / "captions.tsv")
    assert (half.code, "give --captions F and --images F together." in half.err) == (2, True)


def test_the_number_of_captions_is_checked(run: Path) -> None:
    loaded = heed.load(run)
    image = np.zeros((3, 64, 64), dtype=np.uint8)
    for method in (loaded.predict, loaded.caption, loaded.look):
        refuses_wrong_tops(method, image)
