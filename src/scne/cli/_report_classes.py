"""The report on a classifier: rows with their labels, read once, and what the page says of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scne.cli._class_errors import ClassEvaluation, ClassSums
from scne.cli._report_parts import Missing
from scne.cli._report_rows import Inputs, TruthRows, predicted_classes, true_codes
from scne.estimators import SCNEClassifier, file_encoder
from scne.explain import Reading
from scne.fitting import probabilities
from scne.report import Page
from scne.rows import SampleDrawer, counted

# Classes that get a row of their own in tables, and those between which rows are counted.
_SHOWN_CLASSES, _SHOWN_CONFUSIONS = 50, 12
# Parts of the rows, by the probability of what was predicted, in which it is compared with how often that was right.
_BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


@dataclass(frozen=True, eq=False)
class EvaluatedClasses:
    """What a classifier says of rows whose classes are known.

    Of all rows the scores, and `confusion` (K, K), rows by their class and the predicted one; of a sample the inputs,
    as the model takes them and `encoded` (n, d), and the `truth` (n,), places of the classes. `probabilities` makes
    them of the outputs of the regressor inside. `confidence` (b, 3) has, for bins by the
    probability of what was predicted, the rows, the sum of these probabilities and how many were right.
    """

    evaluation: ClassEvaluation
    confusion: NDArray[np.int64]
    confidence: NDArray[np.float64]
    classes: tuple[str, ...]
    sample: Inputs
    truth: NDArray[np.intp]
    encoded: NDArray[np.float64]
    probabilities: Reading

    @property
    def shown(self) -> int:
        """The class whose probability is shown along columns: of two the second one, of more the most frequent."""
        return 1 if len(self.classes) == 2 else int(self.confusion.sum(axis=1).argmax())


def evaluated_classes(model: SCNEClassifier, rows: TruthRows, sample_rows: int, seed: int) -> EvaluatedClasses:
    """Predict all rows in one pass, and draw the sample while they go by."""
    drawer, sums = SampleDrawer(sample_rows, seed), ClassSums(len(model.classes_))
    confidence, n_rows = np.zeros((len(_BINS) - 1, 3)), 0
    for batch, shares in predicted_classes(model, rows):
        drawer.update(batch, n_rows)
        codes = true_codes(model, rows.files, batch, n_rows)
        sums.add(codes, shares)
        confidence += _confidence(codes, shares)
        n_rows += batch.num_rows
    table = drawer.finish().table
    sample = rows.inputs(table)
    return EvaluatedClasses(
        sums.evaluation(),
        sums.confusion,
        confidence,
        tuple(map(str, model.classes_.tolist())),
        sample,
        true_codes(model, rows.files, table.combine_chunks(), 0),
        sample if isinstance(sample, np.ndarray) else file_encoder(model).transform(table),
        lambda outputs: probabilities(model.probability_map_.scores(outputs)),
    )


def _confidence(codes: NDArray[np.intp], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each bin the rows, the sum of the largest probabilities, and the rows whose class that was, shape (b, 3)."""
    largest = shares.max(axis=1)
    places = np.clip(np.searchsorted(_BINS, largest, side="right") - 1, 0, len(_BINS) - 2)
    values = (None, largest, (shares.argmax(axis=1) == codes).astype(np.float64))
    return np.column_stack([np.bincount(places, weights, len(_BINS) - 1) for weights in values])


def add_class_scores(page: Page, evaluated: EvaluatedClasses) -> Missing | None:
    """Accuracy, log loss and area; then class by class, and how far probabilities can be trusted."""
    evaluation = evaluated.evaluation
    page.section("Scores on these rows")
    area = "AUC" if len(evaluated.classes) == 2 else "AUC (mean of each class against the rest)"
    page.table(
        ["score", "value"],
        [
            ["accuracy", evaluation.accuracy],
            ["accuracy of always predicting the most frequent class", evaluation.most_frequent],
            ["log loss", evaluation.log_loss],
            [area, evaluation.auc],
        ],
        caption=f"Over all {counted(evaluation.n_rows, 'row')}."
        + ("" if evaluation.undefined is None else f" {evaluation.undefined}"),
        align="lr",
    )
    _add_each_class(page, evaluated)
    _add_confusion(page, evaluated)
    _add_confidence(page, evaluated)
    return None


def _add_each_class(page: Page, evaluated: EvaluatedClasses) -> None:
    counts = evaluated.confusion
    own, said, right = counts.sum(axis=1), counts.sum(axis=0), np.diag(counts)
    order = np.argsort(-own, kind="stable")[:_SHOWN_CLASSES]
    rows: list[list[str | int | float | None]] = [
        [
            evaluated.classes[k],
            int(own[k]),
            int(said[k]),
            float(right[k] / own[k]) if own[k] else None,
            float(right[k] / said[k]) if said[k] else None,
        ]
        for k in order
    ]
    left = len(evaluated.classes) - len(order)
    page.table(
        ["class", "rows", "predicted", "recall", "precision"],
        rows,
        caption="Recall: the share of a class's rows that were predicted as it. Precision: the share of the rows "
        "predicted as it that are." + (f" {counted(left, 'rarer class')} left out." if left else ""),
        align="lrrrr",
    )


def _add_confusion(page: Page, evaluated: EvaluatedClasses) -> None:
    if len(evaluated.classes) > _SHOWN_CONFUSIONS:
        return
    page.table(
        ["class", *(f"predicted {name}" for name in evaluated.classes)],
        [[name, *map(int, row)] for name, row in zip(evaluated.classes, evaluated.confusion, strict=True)],
        caption="Rows by true class and predicted class.",
        align="l" + "r" * len(evaluated.classes),
    )


def _add_confidence(page: Page, evaluated: EvaluatedClasses) -> None:
    page.subsection(
        "How reliable the probabilities are",
        "Rows by the probability of the predicted class. For calibrated probabilities, the share of right "
        "predictions is near their mean.",
    )
    page.table(
        ["probability", "rows", "mean", "right"],
        [
            [f"{low:g} to {high:g}", int(n), total / n, right / n]
            for low, high, (n, total, right) in zip(_BINS[:-1], _BINS[1:], evaluated.confidence, strict=True)
            if n
        ],
        caption="Mean predicted probability, and the share of these predictions that are correct.",
        align="lrrr",
    )
