"""Model files with random bytes changed: loading one ends with an error, or with the model that was saved."""

import random
import warnings

import numpy as np

from scne import load

from .byte_mutations import mutated
from .corpus import examples, folder
from .harness import Escape, main

_LENGTHS = (0, 1, 2, 7, 8, 100, 2**31 - 1, 2**31, 2**32, 31_999_999, 32_000_001, 2**63 - 1, 2**63, 2**64 - 1)


def _of_another_length(rng: random.Random, data: bytearray, others: object) -> None:
    """The header's length, which is the first thing that is read."""
    known = int.from_bytes(data[:8], "little")
    wanted = rng.choice((*_LENGTHS, known + rng.randrange(-9, 10)))
    data[:8] = (wanted % 2**64).to_bytes(8, "little")


def _of_other_digits(rng: random.Random, data: bytearray, others: object) -> None:
    header = min(len(data), 8 + int.from_bytes(data[:8], "little") % 100_000)
    digits = [place for place in range(min(8, header), header) if 48 <= data[place] <= 57]
    for _ in range(rng.choice((1, 2, 5)) if digits else 0):
        data[rng.choice(digits)] = rng.choice(b"0123456789")


def case(seed: int, number: int) -> str:
    """Change one example, load it, and compare what it says."""
    rng = random.Random(f"{seed}/{number}")
    example = rng.choice(examples())
    others = [other.data for other in examples()]
    path = folder() / "altered.scne"
    path.write_bytes(mutated(rng, example.data, others, (_of_another_length, _of_other_digits)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except (ValueError, OSError):
            return "refused"
        # A whole other example may have been spliced in.
        if not any(_says_the_same(model, other) for other in (example, *examples())):
            raise Escape(f"{example.name} was altered and says something else")
    return "whole"


def _says_the_same(model, example) -> bool:
    try:
        return np.array_equal(model.predict(example.rows), example.said)
    except ValueError:
        return False


if __name__ == "__main__":
    examples()
    main("model_bytes", case, __doc__, 1_000_000)
