"""The end of a classifier's graph: from the outputs of its networks to a label and probabilities.

| output | type and shape | a row with a number that is not finite |
| --- | --- | --- |
| label | (N,): string for classes of text, int64 for numbers, 0 and 1 for false and true | "", or the least int64 |
| probabilities | (N, K) in the order of the classes | NaN |
"""

from itertools import count

import numpy as np

from scne.models.export._classes import LEAST_INTEGER, ClassMap, integer_labels, text_labels
from scne.models.export._onnx_columns import missing_text
from scne.models.export._onnx_graph import GraphBuilder

# The names that converters of scikit-learn's classifiers give, so that programs for those run on these.
LABEL, PROBABILITIES = "label", "probabilities"


def class_property(classes: ClassMap) -> dict[str, object]:
    """What is to be known of the labels: all of them, in order, and what stands for none.

    Examples
    --------
    >>> class_property(ClassMap(("", "a"), np.zeros(2), np.zeros(2)))
    {'labels': ['', 'a'], 'missing': '<missing>'}
    """
    texts = text_labels(classes)
    if texts is not None:
        return {"labels": texts, "missing": missing_text(texts)}
    numbers = integer_labels(classes)
    return {"labels": numbers, "missing": next(n for n in count(LEAST_INTEGER) if n not in numbers)}


def class_outputs(graph: GraphBuilder, classes: ClassMap, totals: str, kind: np.dtype) -> None:
    """Nodes from the outputs of the networks (N, q) in double to those of the graph."""
    scores = _scores(graph, classes, totals)
    raw = graph("Softmax", scores, axis=1)
    # Not a product with 1 - K floor: onnxruntime leaves out products with a number that single precision takes for 1.
    shrunk = graph("Sub", raw, graph("Mul", raw, classes.n_classes * classes.floor))
    graph("Cast", graph("Add", shrunk, classes.floor), output=PROBABILITIES, to=graph.type_of(kind))
    # A row without scores has no greatest one: whatever the runtime says of it, its place is none.
    unknown = graph("IsNaN", graph("ReduceSum", scores, np.array([1]), keepdims=0))
    place = graph("Where", unknown, -1, graph("ArgMax", scores, axis=1, keepdims=0))
    properties = class_property(classes)
    form = "strings" if isinstance(properties["missing"], str) else "int64s"
    labels = {f"values_{form}": properties["labels"], f"default_{form[:-1]}": properties["missing"]}
    keys = list(range(classes.n_classes))
    graph("LabelEncoder", place, domain="ai.onnx.ml", output=LABEL, keys_int64s=keys, **labels)


def _scores(graph: GraphBuilder, classes: ClassMap, totals: str) -> str:
    """z (N, K); NaN stays NaN, which a limit need not do."""
    if classes.n_classes == 2:
        # Halves are exact, so these are (1 - t) / 2 and (1 + t) / 2 to the last bit.
        half = graph("Div", totals, 2.0)
        totals = graph("Concat", graph("Sub", 0.5, half), graph("Add", half, 0.5), axis=1)
    limited = graph("Clip", totals, classes.least, classes.most)
    limited = graph("Where", graph("IsNaN", totals), float("nan"), limited)
    logarithm = graph("Log", graph("Mul", _softplus(graph, graph("Div", limited, classes.softness)), classes.softness))
    # One slope for each class, all the same: with a single number, one near 1 would be left out (see above).
    a, c = (np.full(classes.n_classes, slope) for slope in classes.slopes)
    return graph("Add", graph("Add", graph("Mul", limited, a), graph("Mul", logarithm, c)), classes.biases)


def _softplus(graph: GraphBuilder, z: str) -> str:
    """log(1 + exp(z)) = max(z, 0) + log1p(t) with t = exp(-|z|), to the last digits though ONNX has no log1p.

    With u = 1 + t as it is rounded, log1p(t) = log(u) t / (u - 1): the error of u is in both factors and cancels
    (Kahan). Where u is 1, t itself is right.
    """
    t = graph("Exp", graph("Neg", graph("Abs", z)))
    u = graph("Add", t, 1.0)
    is_one = graph("Equal", u, 1.0)
    beyond = graph("Where", is_one, 1.0, graph("Sub", u, 1.0))
    log1p = graph("Where", is_one, t, graph("Div", graph("Mul", graph("Log", u), t), beyond))
    return graph("Add", graph("Max", z, 0.0), log1p)
