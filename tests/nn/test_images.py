"""Images as a source, their encoder, and uniform numbers for random places."""

from __future__ import annotations

import pytest
import torch
from random_models import random_images, row_of, together

from heed.nn.dropout_keys import DropoutKeys
from heed.nn.images import ImageEncoder, ImageSource


@pytest.fixture(scope="module")
def encoder() -> ImageEncoder:
    torch.manual_seed(0)
    return ImageEncoder((8, 12, 16), num_blocks=1, dropout=0.3).requires_grad_(False)


def test_a_source_of_images_keeps_the_protocol() -> None:
    source = random_images(3)
    assert (len(source), source.mask.shape, bool(source.mask.all())) == (3, (3, 6), True)
    assert source.part(slice(1, 3)).key(0) == source.key(1) != source.key(0)
    assert torch.equal(source.repeat(2).pixels[3:], source.pixels)
    assert torch.equal(source.to(torch.device("cpu")).pixels, source.pixels)


@pytest.mark.parametrize("with_dropout", [False, True])
def test_neighbours_do_not_change_the_features_of_an_image(encoder: ImageEncoder, with_dropout: bool) -> None:
    source = random_images(4)
    keys = DropoutKeys.for_step(1, 2, torch.arange(4)) if with_dropout else None
    features = encoder.read(source, keys)
    assert features.shape == (4, 6, 16)
    for row in range(4):
        alone = encoder.read(row_of(source, row), keys and keys.select(torch.tensor([row])))
        torch.testing.assert_close(features[row : row + 1], alone, rtol=1e-4, atol=1e-5)


def test_a_receptive_field_is_centred_on_its_patch() -> None:
    """Without residual blocks it is the patch and its neighbours; with equal weights, both sides count the same."""
    plain = ImageEncoder((4, 4, 4), num_blocks=0, dropout=0.0).requires_grad_(False)
    for parameter in plain.parameters():
        parameter.fill_(0.1)
    pixels = torch.zeros((1, 3, 64, 64), dtype=torch.uint8)
    pixels[:, :, 24:32, 40:48] = 200  # the patch in row 3 and column 5
    before, after = (_stages(plain, ImageSource(each)) for each in (torch.zeros_like(pixels), pixels))
    moved = (after - before)[0, 0]
    assert divmod(int(moved.argmax()), 8) == (3, 5)
    torch.testing.assert_close(moved[2:5, 4:7], moved[2:5, 4:7].flip(0).flip(1), rtol=1e-4, atol=0)
    assert int((moved > 0).sum()) == 9


def _stages(encoder: ImageEncoder, source: ImageSource) -> torch.Tensor:
    """The features before the last normalisation, which is over the whole image."""
    x = source.pixels.float()
    for reduction, stage in zip(encoder.reductions, encoder.stages, strict=True):
        x = stage(reduction(x))
    return x


def test_uniform_numbers_are_keyed_by_row_and_position() -> None:
    keys = DropoutKeys.for_step(3, 1, torch.arange(2000))
    numbers = keys.uniform(4, site=1)
    assert numbers.shape == (2000, 4)
    assert float(numbers.min()) >= 0
    assert float(numbers.max()) < 1
    assert abs(float(numbers.mean()) - 0.5) < 0.01
    assert torch.equal(keys.uniform(2, site=1, offset=2), numbers[:, 2:])
    assert torch.equal(keys.select(torch.tensor([7])).uniform(4, site=1)[0], numbers[7])
    assert not torch.equal(keys.uniform(4, site=2), numbers)


def test_rows_that_share_a_key_get_streams_of_their_own() -> None:
    keys = DropoutKeys.for_step(3, 1, torch.tensor([5, 5, 6]))
    numbered = keys.numbered(torch.tensor([0, 1, 0])).uniform(8, site=0)
    assert len({tuple(row) for row in numbered.tolist()}) == 3
    assert torch.equal(keys.numbered(torch.tensor([4, 1, 2])).uniform(8, site=0)[1], numbered[1])


def test_sources_are_joined_row_by_row() -> None:
    source = random_images(2)
    assert torch.equal(together([row_of(source, 1), row_of(source, 0)]).pixels, source.pixels[[1, 0]])
