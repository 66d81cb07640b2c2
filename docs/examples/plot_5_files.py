"""
Files with text, dates and gaps
===============================

Parquet, CSV and Arrow files are streamed, in memory that does not grow with the number of rows. Text is encoded as
levels, dates as calendar parts, and missing values as a mean and an indicator; the model file stores all of it.
"""

# %%
# A folder of two files: electricity use of buildings, with a site's name, a time, and a temperature that is sometimes
# missing.
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import scne

rng = np.random.default_rng(0)
hours = pd.date_range("2024-01-01", periods=6_000, freq="h")
site = rng.choice(["office", "school", "shop"], 6_000)
warm = (
    12
    + 10 * np.sin(2 * np.pi * (hours.day_of_year - 100) / 365)
    + 2 * rng.standard_normal(6_000)
)
open_now = (
    (hours.hour > 7) & (hours.hour < 18) & ((site == "shop") | (hours.day_of_week < 5))
)
use = (
    20 + 30 * open_now + 1.5 * np.maximum(0, 15 - warm) + 2 * rng.standard_normal(6_000)
)
table = pd.DataFrame({"time": hours, "site": site, "outdoor": warm, "use": use})
table.loc[rng.random(6_000) < 0.1, "outdoor"] = np.nan

folder = Path(tempfile.mkdtemp())
table[:3_000].to_parquet(folder / "part-1.parquet")
table[3_000:].to_parquet(folder / "part-2.parquet")
table.head()

# %%
# Only names and types are read at this point. Groups may name columns or patterns.
rows = scne.open_rows(
    folder,
    target="use",
    groups={"building": ["site"], "calendar": ["time"], "weather": ["out*"]},
)
base = scne.SCNRegressor.tuned(max_hidden=40, tuning_epochs=5)
model = scne.SCNERegressor(base, networks="across", n_estimators=3, random_state=0).fit(
    rows
)

# %%
# The encoded columns, and what the fit chose.
print(*model.encoder_.names, sep=", ")
print(model.summary())

# %%
# Importances of the columns of the files, whatever their encoding.
importances = model.permutation_importances(rows, n_repeats=2, random_state=0)
scne.GroupContributionDisplay.from_importances(importances, kind="columns")

# %%
# One model file with everything needed for new files; `scne predict` does the same without Python.
model.save(folder / "use.scne")
new = scne.open_rows(folder / "part-2.parquet", target=None)
scne.load(folder / "use.scne").predict(new)[:5].round(1)
