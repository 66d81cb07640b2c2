"""The end of a classifier's C header: from the outputs of its networks to probabilities and the place of a class."""

from collections.abc import Iterator

from scne.models.export._c_text import CWriter, function, loop, refuse_unfit
from scne.models.export._classes import ClassMap, integer_labels, shown_classes, text_labels


def class_tables(c: CWriter, classes: ClassMap) -> list[str]:
    """The classes and the numbers of the map, as constant arrays."""
    texts = text_labels(classes)
    if texts is None:
        labels = c.integers("classes", integer_labels(classes))
    else:
        refuse_unfit(texts, "a class")
        labels = c.texts("classes", texts)
    return [*labels, *c.numbers("slopes", classes.slopes), *c.numbers("biases", classes.biases)]


def class_heading(c: CWriter, classes: ClassMap) -> Iterator[str]:
    """What the header says of its two functions and of the table of classes."""
    yield f"void {c.name}_predict_proba(const {c.real} *row, {c.real} *out)"
    yield "  out: the probability of each class; NaN when a number in the row is not finite. It must not overlap row."
    yield f"int {c.name}_predict(const {c.real} *row)"
    yield f"  The place in {c.name}_classes of the most probable class; -1 when a number in the row is not finite."
    yield f"{c.name}_classes{'' if text_labels(classes) is None else ', in UTF-8'}:"
    yield from (f"  {line}" for line in shown_classes(classes))


def class_functions(c: CWriter, classes: ClassMap) -> list[str]:
    """The functions after ``NAME_outputs``, which gives the outputs of the networks."""
    k = classes.n_classes
    lines = [c.template(_SCORE)]
    for name, number in (("LEAST", classes.least), ("MOST", classes.most), ("SOFTNESS", classes.softness)):
        lines[0] = lines[0].replace(name, c.literal(number))
    lines += [*function(c, "scores", _scores(c, k)), ""]
    softmax = [
        f"{c.real} most, sum = {c.literal(0.0)};",
        f"{c.name}_scores(row, out);",
        "most = out[0];",
        *loop("i", k, ["most = out[i] > most ? out[i] : most;"]),
        *loop("i", k, [f"out[i] = exp{c.suffix}(out[i] - most);", "sum += out[i];"]),
        *loop(
            "i", k, [f"out[i] = {c.literal(1.0 - k * classes.floor)} * (out[i] / sum) + {c.literal(classes.floor)};"]
        ),
    ]
    choice = [
        f"{c.real} scores[{k}];",
        "int best = 0;",
        f"{c.name}_scores(row, scores);",
        *loop(
            "i",
            k,
            ["if (!isfinite(scores[i])) {", "    return -1;", "}", "best = scores[i] > scores[best] ? (int)i : best;"],
        ),
        "return best;",
    ]
    lines += [*function(c, "predict_proba", softmax), ""]
    return [*lines, *function(c, "predict", choice, f"const {c.real} *row", "int")]


def _scores(c: CWriter, n_classes: int) -> list[str]:
    score, biases, one, two = f"{c.name}_score", f"{c.name}_biases", c.literal(1.0), c.literal(2.0)
    if n_classes > 2:
        return [f"{c.name}_outputs(row, out);", *loop("i", n_classes, [f"out[i] = {score}(out[i]) + {biases}[i];"])]
    # Two classes share one output, which is near -1 for the first and near +1 for the second.
    return [
        f"{c.real} output;",
        f"{c.name}_outputs(row, &output);",
        f"out[0] = {score}(({one} - output) / {two}) + {biases}[0];",
        f"out[1] = {score}(({one} + output) / {two}) + {biases}[1];",
    ]


_SCORE = """\
/* What an output says for its class: a f + c log s(f), where s(f) = w log(1 + exp(f / w)) is a smooth max(f, 0). */
static inline REAL NAME_score(REAL output)
{
    const REAL f = output < LEAST ? LEAST : output > MOST ? MOST : output;
    const REAL z = f / SOFTNESS;
    const REAL s = (z > 0.0 ? z : 0.0) + log1p(exp(-fabs(z)));
    return NAME_slopes[0] * f + NAME_slopes[1] * log(SOFTNESS * s);
}
"""
