"""Damaged checkpoints: what a fit does when the folder it resumes from is not as it left it.

    python tests/torture/checkpoints.py --cases 10000 --seed 0

Folders of fits that were killed at many stages are changed in one to three ways, then the fit is resumed. It must end
with the bytes of an undisturbed run, or refuse with a clear error; and no file that the fit did not write may change.
"""

import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cases import Tally, contents, copy_folder, options
from forks import Trap, run, scratch, start, start_tool, write_table
from kills import FIT, Job, make_jobs

CHECKPOINT = "progress"
FOREIGN = ("notes.txt", "mine.npz", "mine.unfinished", "deeper/mine.npz", ".hidden.tmp", "job.txt")
OURS = b"a file of the user\n"


@dataclass
class Damage:
    """A folder in the course of being damaged."""

    folder: Path
    others: list[Path]
    chance: random.Random
    done: list[str] = field(default_factory=list)
    # Names that the fit has not written, or not in this form, and may leave.
    strange: set[str] = field(default_factory=set)
    sealed: bool = False

    def files(self) -> list[Path]:
        return sorted(p for p in self.folder.rglob("*") if p.is_file() and not p.is_symlink())

    def pick(self) -> Path:
        """One of the fit's files; small ones (the manifest, a lock) as often as large ones."""
        return self.chance.choice([p for p in self.files() if p.read_bytes() != OURS])

    def note(self, what: str, *paths: Path) -> None:
        names = [str(path.relative_to(self.folder.parent)) for path in paths]
        self.done.append(f"{what} {' '.join(names)}")
        for name in names:
            self.strange |= {str(Path(name)), *(str(parent) for parent in Path(name).parents)}


def flip(damage: Damage) -> None:
    path = damage.pick()
    content = bytearray(path.read_bytes())
    for _ in range(damage.chance.choice([1, 1, 2, 10])):
        if content:
            content[damage.chance.randrange(len(content))] ^= 1 << damage.chance.randrange(8)
    path.write_bytes(content)
    damage.note("bits flipped in", path)


def cut(damage: Damage) -> None:
    path = damage.pick()
    content = path.read_bytes()
    path.write_bytes(content[: damage.chance.randrange(len(content) + 1)])
    damage.note("cut", path)


def lengthen(damage: Damage) -> None:
    path = damage.pick()
    path.write_bytes(path.read_bytes() + damage.chance.randbytes(damage.chance.choice([1, 100, 10_000])))
    damage.note("lengthened", path)


def splice(damage: Damage) -> None:
    """The beginning of one file, the end of another."""
    first, second = damage.pick(), damage.pick()
    head, tail = first.read_bytes(), second.read_bytes()
    first.write_bytes(head[: damage.chance.randrange(len(head) + 1)] + tail[damage.chance.randrange(len(tail) + 1) :])
    damage.note("spliced", first, second)


def swap(damage: Damage) -> None:
    first, second = damage.pick(), damage.pick()
    head, tail = first.read_bytes(), second.read_bytes()
    first.write_bytes(tail)
    second.write_bytes(head)
    damage.note("swapped", first, second)


def rename(damage: Damage) -> None:
    path = damage.pick()
    suffix = damage.chance.choice([".old", ".unfinished", ".tmp", ".npz", "2"])
    target = path.with_name(damage.chance.choice([path.name + suffix, path.stem + suffix]))
    os.replace(path, target)
    damage.note("renamed", path, target)


def remove(damage: Damage) -> None:
    path = damage.pick()
    path.unlink()
    damage.note("removed", path)


def empty(damage: Damage) -> None:
    path = damage.pick()
    path.write_bytes(b"")
    damage.note("emptied", path)


def add(damage: Damage) -> None:
    path = damage.folder / damage.chance.choice(FOREIGN)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(OURS)
    damage.note("added", path)


def from_elsewhere(damage: Damage) -> None:
    """A file of the same name from another fit, or from another moment of this one."""
    path = damage.pick()
    other = damage.chance.choice(damage.others) / path.relative_to(damage.folder)
    if other.is_file():
        path.write_bytes(other.read_bytes())
        damage.note(f"taken from {other.parent.parent.name}:", path)


def other_arrays(damage: Damage) -> None:
    """A file that is whole by its own checksum, with arrays of other names, types, shapes, or without numbers."""
    import numpy as np

    from scne.disk import DamagedFile, label_of, read_arrays, write_arrays

    path = damage.pick()
    with suppress(DamagedFile):
        label = label_of(path) or ""
        arrays = read_arrays(path, label)
        name = damage.chance.choice(sorted(arrays))
        value = arrays.pop(name)
        change = damage.chance.choice(["shape", "missing", "nan", "type", "name", "size", "sign"])
        changed = {
            "shape": lambda: {name: value.reshape(-1)},
            "size": lambda: {name: value[: len(value) // 2] if value.ndim else value.reshape(1)},
            "nan": lambda: {name: np.full(value.shape, np.nan)},
            "type": lambda: {name: value.astype(np.float32)},
            "name": lambda: {f"{name}s": value},
            "sign": lambda: {name: ~value if value.dtype.kind in "bui" else value * -1000},
            "missing": dict,
        }[change]()
        write_arrays(path, label, {**arrays, **changed})
        # Who can write a right checksum can write any model; what is asked is that nothing breaks.
        damage.sealed = True
        damage.note(f"other {change} of {name} in", path)


def special(damage: Damage) -> None:
    """A folder, a link or a pipe where a file was."""
    path = damage.pick()
    path.unlink()
    kind = damage.chance.choice(["folder", "full folder", "link", "dead link", "link to itself", "pipe"])
    if kind in ("folder", "full folder"):
        path.mkdir()
        if kind == "full folder":
            (path / "mine.txt").write_bytes(OURS)
            damage.note("a file in", path / "mine.txt")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"link": "../precious.npz", "dead link": "nowhere"}.get(kind, path.name))
    damage.note(f"{kind} instead of", path)


def special_folder(damage: Damage) -> None:
    """The whole checkpoint is something else."""
    aside = damage.folder.with_name("aside")
    kind = damage.chance.choice(["file", "pipe", "link", "dead link", "empty", "without rights"])
    if kind == "without rights":
        for path in damage.files():
            path.chmod(0)
    elif kind == "empty":
        for path in damage.files():
            path.unlink()
    else:
        os.replace(damage.folder, aside)
        if kind == "file":
            damage.folder.write_bytes(OURS)
        elif kind == "pipe":
            os.mkfifo(damage.folder)
        else:
            damage.folder.symlink_to("aside" if kind == "link" else "nowhere")
        damage.strange |= {"aside", "nowhere"}
    damage.note(f"{kind} for the folder", damage.folder)


MUTATIONS: tuple[Callable[[Damage], None], ...] = (
    *(flip, flip, flip, cut, cut, lengthen, splice, swap, rename, remove, empty, add),
    *(from_elsewhere, from_elsewhere, other_arrays, other_arrays, special, special, special_folder),
)


def killed_fits(folder: Path, job: Job, step: int) -> list[Path]:
    """Copies of one fit's folder, killed after each tenth of its calls, or each `step`-th of these."""
    stages = []
    for tenth in range(1, 11, step):
        # All in the same place, because a checkpoint knows its data by their path.
        place = copy_folder(job.before, folder / "case")
        (place / "precious.npz").write_bytes(OURS)
        n_calls = len(job.calls)
        run(place, *job.arguments, trap=Trap(max(6, n_calls * tenth // 10 - 2), "kill before"))
        stages.append(copy_folder(place, folder / f"stage {tenth}"))
    return [stage for stage in stages if (stage / CHECKPOINT).exists()]


def other_fits(folder: Path, job: Job) -> list[Path]:
    """Checkpoints of fits with another seed, other rows, another target, all killed near the end."""
    changes = {"seed": ["--seed", "5"], "target": ["--target", "z"], "rows": [], "nodes": ["--nodes", "6"]}
    fits = []
    for name, change in changes.items():
        place = copy_folder(job.before, folder / "case")
        if name == "rows":
            write_table(place / "data.parquet", seed=1)
        arguments = [*FIT, *change, "--out", "model.scne", "--checkpoint", CHECKPOINT]
        run(place, *arguments, trap=Trap(len(job.calls) * 8 // 10, "kill before"))
        fits.append(copy_folder(place, folder / f"other {name}"))
    return fits


def try_case(tally: Tally, job: Job, stages: list[Path], others: list[Path], case: int, chance: random.Random) -> None:
    place = copy_folder(chance.choice(stages), stages[0].parent / "case")
    damage = Damage(place / CHECKPOINT, [path / CHECKPOINT for path in (*others, *stages)], chance)
    for _ in range(chance.choice([1, 1, 2, 3])):
        with suppress(IndexError, OSError):
            chance.choice(MUTATIONS)(damage)
    foreign = {name: content for name, content in contents(place).items() if content == OURS}
    outcome = start(place, *job.arguments).wait(limit=60)
    now = contents(place)
    name = f"{case} ({'; '.join(damage.done)})"
    touched = [name for name in foreign if now.get(name) != OURS]
    left = [path for path in now if path not in job.after and path not in foreign and path not in damage.strange]
    left = [path for path in left if Path(path).parts[0] != "aside"]
    if touched or now["data.parquet"] != job.after["data.parquet"]:
        tally.problem("a file of the user changed", name, f"{touched}; {outcome}")
    elif outcome.status == 0 and now.get("model.scne") != job.after["model.scne"] and not damage.sealed:
        tally.problem("ANOTHER MODEL", name, outcome)
    elif outcome.status == 0 and left:
        tally.problem("left over", name, ", ".join(left))
    elif outcome.status == 0:
        tally.right("resumed or begun anew, the same model")
    elif outcome.status == "hung":
        tally.problem("hung", name, outcome)
    elif not outcome.is_clear_error or CHECKPOINT not in outcome.err:
        tally.problem("no clear error", name, outcome)
    else:
        tally.right("refused with a clear error")


def pairs(tally: Tally, job: Job, folder: Path, n_pairs: int = 12) -> None:
    """Two fits on one checkpoint folder at the same time: one is refused, the other is right."""
    for case in range(n_pairs):
        chance = random.Random(f"{tally.options.seed}/pair {case}")
        place = copy_folder(job.before, folder / "case")
        seed = chance.choice(["0", "1"])
        arguments = [*job.arguments[: job.arguments.index("--out")], "--checkpoint", CHECKPOINT, "--out"]
        first = start(place, *arguments, "first.scne")
        early = first.wait_for(chance.uniform(0, 0.8) * job.seconds)
        second = start(place, *arguments, "second.scne", "--seed", seed)
        ends = [first.wait(), second.wait()]
        models = {name: content for name, content in contents(place).items() if name.endswith(".scne")}
        again = [run(place, *arguments, "first.scne"), run(place, *arguments, "second.scne", "--seed", seed)]
        now, right = contents(place), job.after["model.scne"]
        name = f"pair {case} (seed {seed}{', one after the other' if early else ''})"
        refused = [end for end in ends if end.is_clear_error and CHECKPOINT in end.err]
        if len(refused) + sum(end.status == 0 for end in ends) < 2 or len(refused) == 2:
            tally.problem("two fits, one folder", name, " | ".join(map(str, ends)))
        elif any(end.status != 0 for end in again) or CHECKPOINT in now:
            tally.problem("two fits, one folder, run again", name, " | ".join(map(str, again)))
        elif any(now[name] != content for name, content in models.items() if name != "old.scne") or (
            now["first.scne"] != right or (seed == "0" and now["second.scne"] != right)
        ):
            tally.problem("two fits, one folder: ANOTHER MODEL", name, " | ".join(map(str, ends)))
        else:
            tally.right(f"two fits, one folder: {len(refused)} refused, the other right")


def main() -> int:
    chosen = options(10_000, ("--only", {"choices": ["damage", "pairs"]}))
    tally = Tally(chosen)
    with scratch() as folder:
        job = make_jobs(folder, ("fit with a checkpoint",))[0]
        if chosen.only != "damage" and chosen.case is None:
            pairs(tally, job, folder, 12 if chosen.seconds is None else 2)
        if chosen.only == "pairs":
            return tally.end("checkpoints")
        is_short = chosen.seconds is not None and chosen.seconds < 30
        stages, others = killed_fits(folder, job, 3 if is_short else 1), other_fits(folder, job)
        tally.begin()
        for case, chance in tally.cases():
            try_case(tally, job, stages, others, case, chance)
        return tally.end("checkpoints")


if __name__ == "__main__":
    start_tool(main)
