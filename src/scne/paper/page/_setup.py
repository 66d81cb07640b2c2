"""What the paper fixes before any result: its data sets, groups of features and procedure (Tables 1-3, Figs. 1, 5)."""

from __future__ import annotations

from scne.paper._published import published, published_tables
from scne.paper.page._diagrams import framework_drawings, procedure_drawings
from scne.paper.page._layout import PaperPage

FULL_NAMES = {"twitter": "Buzz Prediction on Twitter", "year": "Year Prediction MSD"}
# What each group measures, after the notes under Tables 2 and 3, in our words.
MEANINGS = {
    "NCD": "discussions created on the topic",
    "AI": "new authors on the topic",
    "AS(NA)": "attention, by the number of authors",
    "BL": "burstiness: NCD over NAD",
    "NAC": "atomic containers (messages) on the topic",
    "AS(NAC)": "attention, by the number of contributions",
    "CS": "how contributions spread over discussions",
    "AT": "authors that interact in a discussion, on average",
    "NA": "authors on the topic",
    "ADL": "average length of a discussion",
    "NAD": "discussions on the topic",
    "TA": "averages of the 12 timbre values",
}
FRAMEWORK_WORDS = (
    "The data set D is parted by groups of features into D_1 to D_M. On each part an SCN base model is built by "
    "itself. Negative correlation learning then solves the output weights of all models together, and the ensemble's "
    "output is the mean of the models' outputs."
)
PROCEDURE_WORDS = (
    "In the training stage, training data lead to the base models and the ensemble, and validation data to the feature "
    "groups, M, λ, the most nodes and the most sweeps. The ensemble is then trained again on both parts together. In "
    "the testing stage it is applied to the testing data."
)


def add_setup(page: PaperPage) -> None:
    """Add the section."""
    page.section("Data and procedure (Tables 1 to 3, Figures 1 and 5)", identifier="setup")
    page.text("As the paper has them; every experiment below uses these groups and this procedure.")
    page.table(
        ["data set", "samples", "features", "values", "training", "testing"],
        [
            [FULL_NAMES[name], paper.samples, paper.features, "numeric", paper.train, paper.test]
            for name, paper in ((name, published(name)) for name in FULL_NAMES)
        ],
        caption="Table 1. The data sets.",
        align="lrrlrr",
        digits=6,
    )
    page.diagram(
        framework_drawings(),
        caption="Figure 1. The framework of SCNE with heterogeneous features (our drawing).",
        alt=FRAMEWORK_WORDS,
        identifier=page.address("setup", "figure-1"),
    )
    page.diagram(
        procedure_drawings(),
        caption="Figure 5. The experiments: arrows are the way of the data (our drawing). Twitter is split 70-15-15 "
        "into training, validation and testing rows, Year 70-20-10 with its own testing rows.",
        alt=PROCEDURE_WORDS,
        identifier=page.address("setup", "figure-5"),
    )
    for number, dataset in ((2, "twitter"), (3, "year")):
        paper = published(dataset)
        with page.folded(f"Table {number}. Feature groups of {paper.name} (M = {len(paper.groups)})"):
            page.table(
                ["group", "m", "columns", "what it measures"],
                [
                    [name, str(m), f"{columns[0] + 1} to {columns[-1] + 1}", _meaning(name)]
                    for m, (name, columns) in enumerate(paper.groups.items(), 1)
                ],
                caption=f"Table {number}. Feature groups of {paper.name}, columns counted from 1. {_note(number)}",
            )


def _meaning(group: str) -> str:
    return MEANINGS.get(group, "timbre covariances, a sixth of the 78")


def _note(number: int) -> str:
    notes: dict[int, str] = {2: published_tables()["table2_twitter_groups"]["note"]}
    return notes.get(number, "")
