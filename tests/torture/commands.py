"""Fits that are killed, changed in one argument or in their data, and resumed.

    python tests/torture/commands.py --cases 200 --seed 0
    python tests/torture/commands.py --only table

A resumed fit must be refused with a clear error, or end with the bytes of a clean run of the changed command. The table
tries every parameter that `scne fit` has, as the command itself lists them: an option that is added without a line here
fails. The state machine mixes kills, changes and resumes at will, on one checkpoint folder.
"""

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from cases import Tally, contents, copy_folder, options
from forks import Outcome, Trap, run, run_function, scratch, start_tool
from forks import write_table as write_parquet

CHECKPOINT = "progress"
GROUPS = '"first" = ["a", "b"]\n"second" = ["c", "d"]\n'
OTHER_GROUPS = '"first" = ["a", "c"]\n"second" = ["b", "d"]\n'
START: dict[str, list[str]] = {
    "data": ["data.parquet"],
    "target": ["y"],
    "out": ["model.scne"],
    "networks": ["2"],
    "nodes": ["5"],
    "tuning": ["0.5"],
    "memory": ["200MB"],
    "checkpoint": [CHECKPOINT],
}
GROUPED = {**START, "groups": ["groups.toml"]}
# Sizes that the effort alone sets.
BY_EFFORT = {name: START[name] for name in ("data", "target", "out", "memory", "checkpoint")} | {"effort": ["1"]}
# Every parameter of `scne fit` with another value; None takes it away.
CHANGES: dict[str, list[list[str] | None]] = {
    "data": [["copy.parquet"], ["folder"], ["columns.parquet"], ["rows.parquet"]],
    "target": [["z"], ["y", "z"], ["z", "y"]],
    "groups": [["groups.toml"], ["other.toml"]],
    "out": [["elsewhere.scne"]],
    "effort": [["1"], ["5"]],
    "networks": [["3"]],
    "per_group": [[]],
    "nodes": [["6"]],
    "tuning": [["0"], ["1"]],
    "validation": [["0.3"]],
    "search_rows": [["200"], ["0"]],
    "scaling": [["standard"], ["none"]],
    "weight": [["w"]],
    "ignore": [["d"], ["z", "w"]],
    "sources_per_node": [["1"]],
    "monotone": [["a=increasing"], ["a=decreasing"]],
    "memory": [["300MB"], ["1GB"]],
    "checkpoint": [["progress2"], None],
    "dask": [["tcp://127.0.0.1:1"]],
    "spark": [["nowhere"]],
    "ray": [["127.0.0.1:1"]],
    "device": [["cpu"]],
    "seed": [["1"]],
    "json_output": [[]],
    "verbose": [[]],
    "kind": [["a=category"], ["d=category"]],
    "missing": [["west"]],
    "classify": [[]],
    "drop_missing_target": [[]],
}
# What a user may do to the files between a kill and the next run.
FILE_CHANGES = ("one value", "touched", "rows added", "columns in another order", "groups file", "groups reordered")


class TimeIsUp(BaseException):
    """Ends a search of Hypothesis, which knows no time limit of its own."""


@dataclass
class Fit:
    """A command as its arguments, and the folder it runs in."""

    folder: Path
    arguments: dict[str, list[str]] = field(default_factory=lambda: {name: list(v) for name, v in START.items()})

    @property
    def out(self) -> str:
        return self.arguments.get("out", ["model.scne"])[0]

    def line(self, *, checkpoint: bool = True) -> list[str]:
        """The arguments as they are typed."""
        line = ["fit"]
        for name, values in self.arguments.items():
            flag = f"--{name.removesuffix('_output').replace('_', '-')}"
            if name == "data":
                line += values
            elif name != "checkpoint" or checkpoint:
                line += [part for value in values for part in (flag, value)] if values else [flag]
        return line

    def change(self, name: str, values: list[str] | None) -> None:
        """Give one argument another value, or take it away."""
        self.arguments.pop(name, None)
        if values is not None:
            self.arguments[name] = values

    def clean(self, place: Path) -> Outcome:
        """The same command in a copy of the folder without its checkpoint; its model is the right one."""
        copy_folder(self.folder, place)
        for path in (*place.glob("progress*"), *place.glob("*.scne")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return run(place, *self.line(checkpoint=False))


def make_folder(folder: Path) -> Path:
    """Data under several names and orders, and two files of groups."""
    folder.mkdir()
    write_parquet(folder / "data.parquet")
    shutil.copy2(folder / "data.parquet", folder / "copy.parquet")
    write_parquet(folder / "rows.parquet", seed=1)
    (folder / "folder").mkdir()
    shutil.copy2(folder / "data.parquet", folder / "folder" / "data.parquet")
    write_columns(folder / "data.parquet", folder / "columns.parquet")
    (folder / "groups.toml").write_text(GROUPS)
    (folder / "other.toml").write_text(OTHER_GROUPS)
    return folder


def write_columns(source: Path, target: Path, change: str = "columns in another order") -> None:
    """The same table with its columns in another order, one other value, or rows added."""

    def write() -> None:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        table = parquet.read_table(source)
        if change == "columns in another order":
            table = table.select(table.column_names[::-1])
        elif change == "rows added":
            table = pa.concat_tables([table, table.slice(0, 50)])
        else:
            values = table.column("a").to_pylist()
            values[7] += 0.5
            table = table.set_column(table.column_names.index("a"), "a", pa.array(values))
        parquet.write_table(table, target)

    outcome = run_function(target.parent, write)
    assert outcome.status == 0, outcome


def change_files(folder: Path, change: str) -> None:
    """Do one of FILE_CHANGES to the files that the command names."""
    data = folder / "data.parquet"
    if change == "touched":
        os.utime(data)
    elif change == "groups file":
        (folder / "groups.toml").write_text(OTHER_GROUPS)
    elif change == "groups reordered":
        (folder / "groups.toml").write_text("".join(reversed(GROUPS.splitlines(keepends=True))))
    else:
        write_columns(data, data, change)


def judge(fit: Fit, outcome: Outcome, clean: Path) -> tuple[str, str]:
    """The kind of outcome of a resumed fit, and what is wrong with it."""
    right = fit.clean(clean)
    if outcome.status == 0:
        if right.status != 0:
            return "WRONG", f"exit 0, but the clean command is refused: {right}"
        same = (fit.folder / fit.out).read_bytes() == (clean / fit.out).read_bytes()
        return ("right", "") if same else ("WRONG", f"ANOTHER MODEL than a clean run of: {' '.join(fit.line())}")
    if right.status != 0 and outcome.err == right.err:
        return "refused, as without a checkpoint", ""
    if outcome.is_clear_error and CHECKPOINT in outcome.err:
        return "refused", ""
    return "WRONG", f"no clear error; {outcome}"


def fit_parameters() -> list[str]:
    """The names of everything that `scne fit` takes."""
    import typer.main

    from scne.cli._app import app

    names = [parameter.name for parameter in typer.main.get_command(app).commands["fit"].params]
    return [name for name in names if name != "help"]


def killed_fit(base: Path, place: Path, arguments: dict[str, list[str]]) -> tuple[Fit, bytes]:
    """A fit that was killed after most of its calls, and the model that it would have written."""
    # In the place where it will be resumed, because a checkpoint knows its data by their path.
    case = copy_folder(base, place.parent / "case")
    fit = Fit(place, arguments)
    outcome = run(case, *fit.line(), trap=Trap())
    assert outcome.status == 0, outcome
    model = (case / "model.scne").read_bytes()
    copy_folder(base, case)
    run(case, *fit.line(), trap=Trap(int(len(outcome.calls) * 0.7), "kill before"))
    assert (case / CHECKPOINT).is_dir()
    copy_folder(case, place)
    return fit, model


def table(tally: Tally, folder: Path) -> None:
    """Each parameter, changed between a kill and the next run; then the first command again, which must be right."""
    base = make_folder(folder / "base")
    cases = [(START, name, values) for name in fit_parameters() for values in CHANGES.get(name, [])]
    cases += [(GROUPED, "groups", ["other.toml"]), (GROUPED, "groups", None), (GROUPED, "per_group", [])]
    cases += [(GROUPED, "files", [change]) for change in FILE_CHANGES]
    cases += [(BY_EFFORT, "effort", ["2"]), (BY_EFFORT, "networks", ["1"])]
    starts = (START, GROUPED, BY_EFFORT)
    killed = [killed_fit(base, folder / f"killed {place}", arguments) for place, arguments in enumerate(starts)]
    for arguments, name, values in cases:
        if not tally.has_time():
            return
        first, wanted = killed[starts.index(arguments)]
        fit = Fit(copy_folder(first.folder, folder / "case"), {name: list(v) for name, v in arguments.items()})
        if name == "files":
            change_files(fit.folder, values[0])
        else:
            fit.change(name, values)
        kind, wrong = judge(fit, run(fit.folder, *fit.line()), folder / "clean")
        shown = f"{name} {' '.join(values) if values is not None else '(taken away)'}"
        if not wrong and kind.startswith("refused") and name != "files":
            again = Fit(fit.folder, first.arguments)
            outcome = run(again.folder, *again.line())
            if outcome.status != 0 or (again.folder / "model.scne").read_bytes() != wanted:
                kind, wrong = "WRONG", f"after the refusal, the first command: {outcome}"
        print(f"  {shown:<42} {kind}", flush=True)
        tally.problem(f"table: {name}", shown, wrong) if wrong else tally.right(f"table: {kind}")


def state_machine(tally: Tally, folder: Path) -> None:
    """Kills, changes and resumes in any order, found and shrunk by Hypothesis."""
    from hypothesis import HealthCheck, Phase, seed, settings
    from hypothesis import strategies as st
    from hypothesis.errors import Flaky
    from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

    base = make_folder(folder / "machine")
    slow = {"dask"}
    changes = [(name, values) for name, all_values in CHANGES.items() if name not in slow for values in all_values]
    known = set(fit_parameters())
    changes = [change for change in changes if change[0] in known]

    class Commands(RuleBasedStateMachine):
        def check_invariants(self, *arguments: object, **more: object) -> None:
            if not tally.has_time():
                raise TimeIsUp
            super().check_invariants(*arguments, **more)

        @initialize()
        def begin(self) -> None:
            self.place = Path(tempfile.mkdtemp(dir=folder))
            self.fit = Fit(copy_folder(base, self.place / "fit"))

        @rule(place=st.integers(1, 170))
        def fit_and_kill(self, place: int) -> None:
            run(self.fit.folder, *self.fit.line(), trap=Trap(place, "kill before"))

        @rule(change=st.sampled_from(changes))
        def change_an_argument(self, change: tuple[str, list[str] | None]) -> None:
            self.fit.change(*change)

        @rule(place=st.integers(20, 150), change=st.sampled_from(changes))
        def kill_change_and_resume(self, place: int, change: tuple[str, list[str] | None]) -> None:
            self.fit_and_kill(place)
            self.fit.change(*change)
            self.resume()

        @rule(change=st.sampled_from(FILE_CHANGES))
        def change_a_file(self, change: str) -> None:
            change_files(self.fit.folder, change)

        @rule()
        def take_the_changes_back(self) -> None:
            self.fit.arguments = {name: list(values) for name, values in START.items()}

        @rule()
        def delete_the_checkpoint(self) -> None:
            shutil.rmtree(self.fit.folder / CHECKPOINT, ignore_errors=True)

        @rule()
        def resume(self) -> None:
            before = contents(self.fit.folder)["data.parquet"]
            outcome = run(self.fit.folder, *self.fit.line())
            kind, wrong = judge(self.fit, outcome, self.place / "clean")
            if wrong:
                tally.outcomes["WRONG: machine"] += 1
            else:
                tally.right(f"machine: {kind}")
            assert not wrong, wrong
            assert contents(self.fit.folder)["data.parquet"] == before

        def teardown(self) -> None:
            shutil.rmtree(getattr(self, "place", folder / "none"), ignore_errors=True)

    machine = seed(tally.options.seed)(Commands)
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=tally.options.cases,
                stateful_step_count=8,
                deadline=None,
                database=None,
                suppress_health_check=quiet,
                phases=[Phase.explicit, Phase.generate, Phase.shrink],
            ),
        )
    except TimeIsUp:
        pass
    except Flaky:
        # A case that is run again after the time is up ends sooner than it did.
        if tally.has_time():
            raise
    except AssertionError as error:
        tally.problem(
            "machine", f"seed {tally.options.seed}", f"{error}\n" + "\n".join(getattr(error, "__notes__", []))
        )


def main() -> int:
    chosen = options(40, ("--only", {"choices": ["table", "machine"]}))
    tally = Tally(chosen)
    with scratch() as folder:
        for name in fit_parameters():
            if name not in CHANGES:
                tally.problem("an option that is not in the table", name, "add it to CHANGES")
        if chosen.only != "machine":
            table(tally, folder)
        if chosen.only != "table" and tally.has_time():
            state_machine(tally, folder)
        return tally.end("commands")


if __name__ == "__main__":
    start_tool(main)
