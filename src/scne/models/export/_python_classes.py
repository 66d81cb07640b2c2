"""What an exported classifier does with the outputs of its networks; `_python_source` copies these functions.

The map is a dictionary: "slopes", "biases", "least", "most", "softness" and "floor" are the fields of `ClassMap`.
"""

# What is read from the map is not typed in the exported file either.
# mypy: disable-error-code="no-any-return"
import math
from collections.abc import Mapping, Sequence
from typing import Any


def _scores(outputs: Sequence[float], known: Mapping[str, Any]) -> list[float]:
    """Log-probabilities of the classes up to a constant."""
    if len(outputs) == 1:
        # Two classes share one output, which is near -1 for the first and near +1 for the second.
        outputs = [(1.0 - outputs[0]) / 2.0, (1.0 + outputs[0]) / 2.0]
    return [_score(output, known) + bias for output, bias in zip(outputs, known["biases"], strict=True)]


def _score(output: float, known: Mapping[str, Any]) -> float:
    """What an output says for its class: a f + c log s(f), where s(f) = w log(1 + exp(f / w)) is a smooth max(f, 0)."""
    f = min(max(output, known["least"]), known["most"])
    z = f / known["softness"]
    s = max(z, 0.0) + math.log1p(math.exp(-abs(z)))
    a, c = known["slopes"]
    return a * f + c * math.log(known["softness"] * s)


def _probabilities(scores: Sequence[float], floor: float) -> list[float]:
    """Softmax, kept off 0 and 1."""
    most = max(scores)
    grown = [math.exp(score - most) for score in scores]
    total = sum(grown)
    return [(1.0 - len(scores) * floor) * (one / total) + floor for one in grown]
