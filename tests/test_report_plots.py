"""Every plot can be drawn from whatever a run may give, says what it shows, and stays small."""

from __future__ import annotations

import matplotlib.text
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from scne.report import (
    DARK,
    BuildingCurve,
    draw_building,
    draw_comparison,
    draw_contributions,
    draw_convergence,
    draw_distribution,
    draw_lambda_path,
    draw_level_effect,
    draw_number_effect,
    draw_predicted,
    draw_residuals,
    render_svg,
    themed,
)
from scne.report._labels import flag_rows, shorten, spread, text_width

NAN = float("nan")
LAMBDAS = np.linspace(0, 8 / 7, 30)
FALLING = np.linspace(0.9, 0.4, 30)


def building(members: int, nodes: int = 20, validation: bool = True) -> dict[str, BuildingCurve]:
    steps = np.arange(1, nodes + 1)
    return {
        f"member {m}": BuildingCurve(
            training=1 / (steps + m + 1),
            validation=1 / (steps + m + 1) + 0.01 if validation else None,
            kept=min(nodes, 5 + m),
        )
        for m in range(members)
    }


CASES = {
    "building, one": lambda ax: draw_building(ax, building(1)),
    "building, twelve": lambda ax: draw_building(ax, building(12)),
    "building, forty": lambda ax: draw_building(ax, building(40)),
    "building, no validation": lambda ax: draw_building(ax, building(3, validation=False)),
    "building, NaN validation": lambda ax: draw_building(ax, {"a": BuildingCurve(FALLING, np.full(30, NAN), kept=3)}),
    "building, one node": lambda ax: draw_building(ax, building(2, nodes=1)),
    "building, constant": lambda ax: draw_building(ax, {"a": BuildingCurve(np.full(9, 0.5), np.full(9, 0.5), 1)}),
    "building, zero": lambda ax: draw_building(ax, {"a": BuildingCurve(np.zeros(9))}),
    "building, batches": lambda ax: draw_building(
        ax, {"a": BuildingCurve(np.array([0.9, 0.5]), nodes=np.array([10, 20]), kept=20)}
    ),
    "building, none": lambda ax: draw_building(ax, {}),
    "convergence": lambda ax: draw_convergence(ax, {"a": 1 + 0.5 ** np.arange(30), "b": 1 + 0.9 ** np.arange(30)}),
    "convergence, exact": lambda ax: draw_convergence(ax, {"a": [1.0, 0.5, 0.5, 0.5]}, reference=0.5),
    "convergence, single": lambda ax: draw_convergence(ax, {"a": [0.5]}),
    "convergence, zero limit": lambda ax: draw_convergence(ax, {"a": [1.0, 0.1, 0.0]}, reference=0.0),
    "convergence, diverging": lambda ax: draw_convergence(
        ax, {"a": [1.0, 1e9, np.inf, NAN], "b": [1.0, 0.5, 0.5]}, reference=0.5
    ),
    "convergence, all NaN": lambda ax: draw_convergence(ax, {"a": [NAN, NAN]}),
    "convergence, none": lambda ax: draw_convergence(ax, {}),
    "lambda": lambda ax: draw_lambda_path(
        ax,
        LAMBDAS,
        FALLING,
        FALLING + 0.1,
        criterion=FALLING + 0.05,
        chosen=1.0,
        marks={"bound": 0.6, "far": 9.0},
    ),
    "lambda, no test": lambda ax: draw_lambda_path(ax, LAMBDAS, FALLING, chosen=0.0),
    "lambda, NaN test": lambda ax: draw_lambda_path(ax, LAMBDAS, FALLING, np.full(30, NAN), chosen=8 / 7),
    "lambda, part NaN": lambda ax: draw_lambda_path(
        ax, LAMBDAS, FALLING, np.where(LAMBDAS > 0.5, NAN, FALLING), chosen=1.0
    ),
    "lambda, constant": lambda ax: draw_lambda_path(ax, LAMBDAS, np.ones(30), np.ones(30), chosen=0.5),
    "lambda, one point": lambda ax: draw_lambda_path(ax, [0.1], [0.5], [0.6], chosen=0.1),
    "lambda, all NaN": lambda ax: draw_lambda_path(ax, LAMBDAS, np.full(30, NAN), chosen=0.1),
    "contributions": lambda ax: draw_contributions(ax, list("abc"), [0.1, -0.2, NAN]),
    "contributions, zero": lambda ax: draw_contributions(ax, list("ab"), [0.0, 0.0]),
    "contributions, negative": lambda ax: draw_contributions(ax, list("ab"), [-0.1, -3.0]),
    "contributions, none": lambda ax: draw_contributions(ax, [], []),
    "comparison": lambda ax: draw_comparison(ax, list("abc"), [0.3, NAN, 0.2], highlight=["a", "c"]),
    "comparison, equal": lambda ax: draw_comparison(ax, list("ab"), [0.3, 0.3]),
    "comparison, zero": lambda ax: draw_comparison(ax, ["a"], [0.0]),
    "comparison, all NaN": lambda ax: draw_comparison(ax, ["a"], [NAN]),
    "comparison, long": lambda ax: draw_comparison(ax, ["a name that goes on " * 5] * 2, [0.1, 0.2]),
    "predicted": lambda ax: draw_predicted(ax, LAMBDAS, FALLING),
    "predicted, constant": lambda ax: draw_predicted(ax, np.full(9, 3.0), np.full(9, 3.0)),
    "predicted, constant truth": lambda ax: draw_predicted(ax, np.zeros(30), FALLING),
    "predicted, NaN": lambda ax: draw_predicted(ax, [1.0, NAN, 2.0], [1.0, 2.0, np.inf]),
    "predicted, none": lambda ax: draw_predicted(ax, [], []),
    "residuals": lambda ax: draw_residuals(ax, FALLING, LAMBDAS, target="a$ name_of {sorts} " * 5),
    "residuals, NaN": lambda ax: draw_residuals(ax, [1.0, NAN, 2.0], [1.0, 2.0, np.inf]),
    "residuals, zero": lambda ax: draw_residuals(ax, np.ones(9), np.zeros(9)),
    "residuals, none": lambda ax: draw_residuals(ax, [], []),
    "distribution": lambda ax: draw_distribution(ax, [*FALLING, 1e9]),
    "distribution, NaN": lambda ax: draw_distribution(ax, [1.0, NAN]),
    "distribution, zero": lambda ax: draw_distribution(ax, np.zeros(9)),
    "distribution, none": lambda ax: draw_distribution(ax, []),
    "effect": lambda ax: draw_number_effect(ax, LAMBDAS, FALLING, LAMBDAS, column="a$ name_of {sorts} " * 5),
    "effect, flat": lambda ax: draw_number_effect(ax, [0.0, 1.0], [0.0, 0.0], [0.0, 1.0, 1.0]),
    "effect, an outlier": lambda ax: draw_number_effect(ax, [0, 1, 1e6], [0, 1, 50], [*np.ones(999), 0.0, 1e6]),
    "effect of levels": lambda ax: draw_level_effect(ax, ["calm", "$gale_"], [-1.0, 2.0], [0.995, 0.005]),
    "effect of levels, none": lambda ax: draw_level_effect(ax, [], [], []),
}


@pytest.mark.parametrize("draw", CASES.values(), ids=CASES.keys())
def test_every_case_can_be_drawn(draw) -> None:
    with themed(DARK):
        figure = Figure(figsize=(3.65, 3.0), layout="constrained")  # a phone's width, the harder one
        FigureCanvasAgg(figure)
        draw(figure.add_subplot())
        figure.draw_without_rendering()
        words = [t.get_text() for t in figure.findobj(matplotlib.text.Text)]
    assert "nan" not in " ".join(words).lower()


@pytest.mark.parametrize("name", ["building, twelve", "lambda", "comparison", "predicted", "convergence"])
def test_same_data_same_drawing(name: str) -> None:
    assert render_svg(CASES[name], height=3) == render_svg(CASES[name], height=3)


def text_boxes(draw, width: float) -> list[tuple[str, matplotlib.transforms.Bbox]]:
    with themed(DARK):
        figure = Figure(figsize=(width, 4.0), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.add_subplot())
        figure.draw_without_rendering()
        texts = figure.findobj(matplotlib.text.Text)
        return [(t.get_text(), t.get_window_extent()) for t in texts if t.get_visible() and t.get_text().strip()]


@pytest.mark.parametrize("width", [7.65, 3.65])
@pytest.mark.parametrize("chosen", [0.0, 0.1, 0.6, 8 / 7])
def test_labels_of_the_lambda_path_do_not_collide(width: float, chosen: float) -> None:
    def draw(ax) -> None:
        marks = {"θ₀ bound": 0.14, "Jacobi bound": 0.65, "another": 0.66}
        draw_lambda_path(ax, LAMBDAS, FALLING, FALLING + 0.02, criterion=FALLING + 0.01, chosen=chosen, marks=marks)

    wanted = (
        "averaging",
        "paper",
        "joint",
        "θ₀",
        "Jacobi",
        "another",
        "chosen",
        "test",
        "training",
        "criterion",
    )
    boxes = [(text, box) for text, box in text_boxes(draw, width) if text.startswith(wanted)]
    assert len(boxes) == len(wanted)
    for i, (first, a) in enumerate(boxes):
        for second, b in boxes[i + 1 :]:
            assert not a.overlaps(b), f"{first!r} covers {second!r}"


@pytest.mark.parametrize("width", [7.65, 3.65])
def test_twelve_members_are_all_named(width: float) -> None:
    boxes = [(t, b) for t, b in text_boxes(lambda ax: draw_building(ax, building(12)), width) if "member" in t]
    assert len(boxes) == 12
    heights = sorted(0.5 * (box.y0 + box.y1) for _, box in boxes)
    assert min(np.diff(heights)) > 8


def test_members_of_one_colour_differ_in_their_marker() -> None:
    figure = Figure()
    ax = figure.add_subplot()
    draw_building(ax, building(12))
    looks = {(line.get_color(), line.get_marker()) for line in ax.lines if line.get_marker() != "None"}
    assert len(looks) == 12


def test_an_exact_solver_does_not_stretch_the_axis() -> None:
    ax = Figure().add_subplot()
    draw_convergence(ax, {"cg": 0.5 + 0.1 ** np.arange(1, 5), "cholesky": [0.5]}, reference=0.5)
    assert ax.get_ylim()[0] > 1e-5


def test_a_diverging_solver_is_marked_and_leaves_room_for_the_others() -> None:
    names = [
        text
        for text, _ in text_boxes(
            lambda ax: draw_convergence(ax, {"a": 0.5 + 10.0 ** np.arange(100), "b": [1.0, 0.6, 0.51]}, reference=0.5),
            7.65,
        )
    ]
    assert "a ↑" in names
    assert "b" in names


def test_bars_are_sorted_and_negative_values_signed() -> None:
    ax = Figure().add_subplot()
    draw_contributions(ax, ["little", "harm", "much"], [0.01, -0.02, 0.5])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["much", "little", "harm"]
    assert [text.get_text() for text in ax.texts] == ["+0.500", "+0.010", "−0.020"]


def test_a_million_rows_make_a_small_drawing() -> None:
    rng = np.random.default_rng(0)
    truth = rng.standard_t(2, size=1_000_000)
    svg = render_svg(lambda ax: draw_predicted(ax, truth, truth + rng.normal(size=truth.size)), width=5, height=4)
    assert len(svg) < 80_000


def test_extreme_rows_do_not_squeeze_the_others() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=10_000)
    prediction = truth.copy()
    prediction[0] = 1e6
    ax = Figure().add_subplot()
    draw_predicted(ax, truth, prediction)
    assert ax.get_xlim()[1] < 10
    assert ax.texts[0].get_text() == "1 of 10,000 rows are not shown"


def test_drawing_leaves_the_data_alone() -> None:
    truth, prediction = np.array([1.0, NAN, 3.0]), np.array([1.0, 2.0, 3.0])
    truth.flags.writeable = prediction.flags.writeable = False
    render_svg(lambda ax: draw_predicted(ax, truth, prediction), width=3, height=3)


def test_spread_keeps_order_gap_and_range() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        positions = rng.uniform(size=8)
        moved = spread(positions, gap=0.1)
        assert (np.argsort(moved) == np.argsort(positions)).all()
        assert np.diff(np.sort(moved)).min() >= 0.1 - 1e-12
        assert moved.min() >= 0
        assert moved.max() <= 1
    assert np.allclose(spread([0.1, 0.5], gap=0.1), [0.1, 0.5])


def test_no_flag_covers_another_flag_or_pole() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        positions, widths = rng.uniform(0, 300, size=7), rng.uniform(20, 90, size=7)
        rows = flag_rows(positions.tolist(), widths.tolist())
        for i in range(7):
            for j in range(7):
                crosses = i != j and positions[i] <= positions[j] <= positions[i] + widths[i]
                assert not (crosses and rows[j] >= rows[i])


def test_a_long_name_is_cut_to_its_room() -> None:
    short = shorten("station-" * 10, size=8, width=100)
    assert "…" in short
    assert text_width(short, 8) <= 100
