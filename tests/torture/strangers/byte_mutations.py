"""Random changes of bytes: flips, cuts, insertions, splices."""

import random
from collections.abc import Sequence

_TOKENS = (b"NaN", b"1e999", b"-0", b"null", b"[[[[", b'"', b"\\", b"\\ud800", b"{}", b"\xff", b"9" * 30, b"\0")


def _flipped(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwritten(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    place = rng.randrange(len(data))
    data[place : place + rng.randrange(1, 17)] = rng.randbytes(rng.randrange(0, 17))


def _cut(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    place = rng.randrange(len(data))
    if rng.random() < 0.5:
        del data[place:]
    else:
        del data[place : place + rng.randrange(1, 200)]


def _repeated(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    place, length = rng.randrange(len(data)), rng.randrange(1, 300)
    data[place:place] = data[place : place + length] * rng.choice((1, 1, 2, 20))


def _spliced(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    other = rng.choice([other for other in others if other])
    start, place = rng.randrange(len(other)), rng.randrange(len(data))
    length = rng.randrange(1, 2_000)
    data[place : place + rng.choice((0, length))] = other[start : start + length]


def _with_a_token(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    place = rng.randrange(len(data))
    data[place : place + rng.choice((0, 1, 4))] = rng.choice(_TOKENS)


MUTATIONS = (_flipped, _overwritten, _cut, _repeated, _spliced)


def mutated(rng: random.Random, data: bytes, others: Sequence[bytes], more: Sequence = ()) -> bytes:
    """The bytes with one to three changes, of these kinds or of `more`."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if changed:
            rng.choice((*MUTATIONS, *more, _with_a_token))(rng, changed, others)
    return bytes(changed)
