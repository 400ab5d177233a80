"""Keyed dropout: random masks that do not depend on the batch.

A mask is a hash of (seed, step, row, site, position): a counter-based generator (Salmon et al. 2011, "Parallel
random numbers: as easy as 1, 2, 3"). A sentence gets the same mask alone or in any batch, on any rank and after a
resume, and no generator state has to be saved. `DropoutKeys` is passed as an argument: without it there is no dropout,
so no layer has a training mode.

One 64-bit hash gives eight mask bytes, so a dropout probability is rounded to a multiple of 1/256; kept values are
scaled by the exact share that is kept. PyTorch's own CPU dropout is scalar and single-threaded, several times slower.
On a GPU a hash and its comparison are one kernel, which PyTorch compiles when it is first needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Odd 64-bit constants (SplitMix64's increment and multipliers), as signed integers.
_GOLDEN = -7046029254386353131
_MIX_1 = -4658895280553007687
_MIX_2 = -7723592293110705685
_MASK_34, _MASK_37, _MASK_33 = (1 << 34) - 1, (1 << 37) - 1, (1 << 33) - 1
_MASK_53, _MASK_64 = (1 << 53) - 1, (1 << 64) - 1


def _mix(x: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """SplitMix64's finaliser on int64, in place on a CPU: every input bit reaches every output bit."""
    if x.is_cuda:
        return _gpu_mix()(x)
    x ^= (x >> 30) & _MASK_34
    x *= _MIX_1
    x ^= (x >> 27) & _MASK_37
    x *= _MIX_2
    x ^= (x >> 31) & _MASK_33
    return x


def _bytes_at_least(x: Int[Tensor, "..."], limit: int) -> Bool[Tensor, "..."]:
    """`bytes >= limit` for the eight bytes of each hash of x; the last dimension becomes eight times as long."""
    if x.is_cuda:
        return _gpu_mix(limit)(x).view(torch.bool)
    return _at_least(_mix(x).view(torch.uint8), limit)


@functools.cache
def _gpu_mix(limit: int | None = None) -> Callable[[Tensor], Tensor]:
    """The finaliser as one kernel; with `limit`, each byte of its result becomes 1 if it is at least that, else 0."""
    compare = f"""
        unsigned long long kept = 0;
        for (int i = 0; i < 64; i += 8) kept |= (unsigned long long) (((h >> i) & 255) >= {limit}) << i;
        h = kept;"""
    code = f"""
    template <typename T> T dropout_hash(T x) {{
        unsigned long long h = (unsigned long long) x;
        h ^= h >> 30;
        h *= {_MIX_1 & _MASK_64:#x}ULL;
        h ^= h >> 27;
        h *= {_MIX_2 & _MASK_64:#x}ULL;
        h ^= h >> 31;{"" if limit is None else compare}
        return (T) h;
    }}"""
    kernel: Callable[[Tensor], Tensor] = torch.cuda.jiterator._create_jit_fn(code)
    return kernel


def mix_int(x: int) -> int:
    """The same finaliser on a Python integer modulo 2^64; the result is signed."""
    x &= _MASK_64
    x = ((x ^ (x >> 30)) * (_MIX_1 & _MASK_64)) & _MASK_64
    x = ((x ^ (x >> 27)) * (_MIX_2 & _MASK_64)) & _MASK_64
    x ^= x >> 31
    return _signed(x)


def _signed(x: int) -> int:
    """A Python integer modulo 2^64, as the signed integer with the same bits."""
    x &= _MASK_64
    return x - (1 << 64) if x >> 63 else x


@dataclass(frozen=True)
class DropoutKeys:
    """Random streams of one training step: a key for each row of the batch, and one that all rows share."""

    keys: Int[Tensor, " B"]
    step: int | None = 0
    """The key of the step itself, for masks that all rows share (see `shared`); None if there are none."""
    shift: int = 0
    """Added to the positions of masks."""

    @staticmethod
    def for_step(seed: int, step: int, rows: Int[Tensor, " B"]) -> DropoutKeys:
        """Streams keyed by the run's seed, the number of the update, and each row's index in the corpus."""
        base = mix_int(mix_int(seed) + step)
        return DropoutKeys(_mix(rows * _GOLDEN + base), base)

    def fold(self, site: int) -> DropoutKeys:
        """Independent streams for a numbered part of the model."""
        increment = _signed((site + 1) * _GOLDEN)
        step = None if self.step is None else mix_int(self.step + increment)
        return DropoutKeys(_mix(self.keys + increment), step, self.shift)

    def shared(self) -> DropoutKeys:
        """One stream that all rows share, for masks of weights rather than activations.

        Raises RuntimeError for keys without one of the step.
        """
        if self.step is None:
            raise RuntimeError("these dropout keys have no stream that all rows share")
        return DropoutKeys(torch.tensor([self.step], device=self.keys.device), self.step)

    def select(self, rows: Int[Tensor, " R"]) -> DropoutKeys:
        """The streams of the given rows."""
        return replace(self, keys=self.keys[rows])

    def join(self, other: DropoutKeys) -> DropoutKeys:
        """The streams of these rows, then those of `other`, which must be of the same step."""
        return replace(self, keys=torch.cat((self.keys, other.keys)))

    def repeat(self, times: int) -> DropoutKeys:
        """Each row's stream `times` times: the rows of one source."""
        return replace(self, keys=self.keys.repeat_interleave(times))

    def shifted(self, num_positions: int) -> DropoutKeys:
        """The same streams for positions that are counted from `num_positions`."""
        return replace(self, shift=self.shift + num_positions)

    def numbers(self, count: int) -> Int[Tensor, "B count"]:
        """`count` random numbers of each row, in 0 … 2^63 - 1; the first ones do not depend on `count`."""
        counter = torch.arange(count, device=self.keys.device)
        return _mix(self.keys[:, None] + counter * _GOLDEN) & (2**63 - 1)

    def keep(self, shape: tuple[int, ...], probability: float, offset: int = 0) -> Tensor:
        """A boolean mask `[B, *shape]`, False with `probability` (rounded to 1/256).

        `shape` is (T, ..., D) with positions first; `offset` is the first position, so that a target in chunks gets
        the same masks.
        """
        positions, inner = shape[0], 1
        for size in shape[1:]:
            inner *= size
        words = (inner + 7) // 8
        counter = torch.arange(offset * words, (offset + positions) * words, device=self.keys.device)
        keep = _bytes_at_least(self.keys[:, None] + counter * _GOLDEN, in_256ths(probability))
        if words * 8 != inner:
            keep = keep.view(len(self.keys), positions, words * 8)[..., :inner]
        return keep.reshape(len(self.keys), *shape)

    def uniform(self, num_positions: int, site: int, offset: int = 0) -> Float[Tensor, "B T"]:
        """A number in [0, 1) for each row and position, for random choices; `offset` is the first position."""
        begin = self.shift + offset
        counter = torch.arange(begin, begin + num_positions, device=self.keys.device)
        bits = _mix(self.fold(site).keys[:, None] + counter * _GOLDEN)
        return (bits & _MASK_53).double() / 2.0**53

    def numbered(self, numbers: Int[Tensor, " B"]) -> DropoutKeys:
        """Streams of their own for rows that share a key, by the number of each."""
        return replace(self, keys=_mix(self.keys + numbers * _MIX_1))

    def dropout(self, x: Float[Tensor, "B T ..."], probability: float, site: int, offset: int = 0) -> Tensor:
        """Inverted dropout: zero with `probability`; kept values are scaled to preserve the mean."""
        if not in_256ths(probability):
            return x
        keep = self.fold(site).keep(tuple(x.shape[1:]), probability, self.shift + offset)
        return x * as_factors(keep, x.dtype, probability)

    def locked(self, x: Float[Tensor, "B T ..."], probability: float, site: int) -> Tensor:
        """Dropout with one mask for all positions of a row (variational; Gal & Ghahramani 2016)."""
        if not in_256ths(probability):
            return x
        keep = self.fold(site).keep((1, *x.shape[2:]), probability)
        return x * as_factors(keep, x.dtype, probability)

    def weights(self, weight: Float[Tensor, "..."], probability: float, site: int) -> Tensor:
        """DropConnect (Wan et al. 2013): dropout of a weight's elements, the same for all rows and positions."""
        return self.shared().dropout(weight[None], probability, site)[0]

    def dropout_ragged(self, x: Float[Tensor, "B T H S"], probability: float, site: int, offset: int = 0) -> Tensor:
        """Dropout of attention weights, whose last size S is padded: the mask of element s does not depend on S."""
        if not in_256ths(probability):
            return x
        keep = self.keep_ragged(tuple(x.shape[1:]), probability, site, offset)
        return x * as_factors(keep, x.dtype, probability)

    def keep_ragged(self, shape: tuple[int, ...], probability: float, site: int, offset: int = 0) -> Tensor:
        """The boolean mask `[B, *shape]` of `dropout_ragged`; `shape` is (T, H, S)."""
        num_queries, num_heads, size = shape
        words = (size + 7) // 8
        device = self.keys.device
        site_keys = self.fold(site).keys[:, None, None, None]
        begin = self.shift + offset
        queries = torch.arange(begin, begin + num_queries, device=device)[:, None, None] * _signed(_MIX_1)
        heads = torch.arange(num_heads, device=device)[:, None] * _signed(_MIX_2)
        counter = queries + heads + torch.arange(words, device=device) * _GOLDEN
        return _bytes_at_least(site_keys + counter, in_256ths(probability))[..., :size]


def _at_least(values: Tensor, limit: int) -> Tensor:
    """`values >= limit` of bytes, which it overwrites: on a CPU six times as fast as the comparison."""
    if not 0 < limit < 256:
        return values >= limit
    return values.clamp_(limit - 1, limit).sub_(limit - 1).view(torch.bool)


def in_256ths(probability: float) -> int:
    """A dropout probability below 1 in units of 1/256, rounded; at most 255, so that something is kept."""
    return min(round(probability * 256), 255)


def as_factors(keep: Tensor, dtype: torch.dtype, probability: float) -> Tensor:
    """A boolean mask as factors: 0, or for kept elements the factor that preserves the mean."""
    factor = 256.0 / (256 - in_256ths(probability))
    return keep.view(torch.uint8).to(dtype).mul_(factor)  # bytes are converted many times faster


def dropout(x: Tensor, probability: float, dropout_keys: DropoutKeys | None, site: int, offset: int = 0) -> Tensor:
    """`dropout_keys.dropout`, or `x` itself without keys."""
    return x if dropout_keys is None else dropout_keys.dropout(x, probability, site, offset)
