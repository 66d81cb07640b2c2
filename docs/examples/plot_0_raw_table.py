"""
A raw table
===========

Text, dates, categories and missing values go in as they are. The fit decides what each column becomes, and the model
takes new rows in the same form.
"""

# %%
# Bicycle rentals with a time stamp, a text, a category of numbers, a gap in every tenth temperature, and a flag.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from scne import GroupContributionDisplay, SCNERegressor

rng = np.random.default_rng(0)
n = 4_000
when = pd.date_range("2024-01-01", periods=n, freq="2h")
frame = pd.DataFrame(
    {
        "when": when,
        "weather": rng.choice(["clear", "cloudy", "rain"], n, p=[0.5, 0.3, 0.2]),
        "station": pd.Categorical(rng.choice([7, 12, 31, 40], n)),
        "temperature": 12
        - 10 * np.cos(2 * np.pi * when.day_of_year / 366)
        + rng.normal(0, 3, n),
        "holiday": rng.random(n) < 0.05,
    }
)
working = (when.day_of_week < 5) & ~frame["holiday"]
rush = np.where(
    working, np.isin(when.hour, [8, 16, 18]), 0.6 * np.isin(when.hour, [12, 14, 16])
)
rentals = (5 + 60 * rush + 2 * frame["temperature"].clip(0)) * frame["weather"].map(
    {"clear": 1.0, "cloudy": 0.9, "rain": 0.4}
)
rentals = (rentals + rng.normal(0, 4, n)).clip(0)
frame.loc[rng.random(n) < 0.1, "temperature"] = np.nan
frame.head()

# %%
# A fit, without any preparation.
train, test = np.split(rng.permutation(n), [3_000])
model = SCNERegressor(random_state=0).fit(frame.iloc[train], rentals.iloc[train])
print(f"R^2 on new rows {model.score(frame.iloc[test], rentals.iloc[test]):.3f}")

# %%
# What the fit chose, and what the columns became.
print(model.summary())
print(*model.encoder_.get_feature_names_out(), sep=", ")

# %%
# Importances are those of your columns, not of what they were encoded to.
GroupContributionDisplay.from_estimator(
    model, frame.iloc[test], rentals.iloc[test], kind="columns", random_state=0
)

# %%
# Predictions with intervals, for the last ordinary week of the table.
week = slice(-84, None)
prediction, lower, upper = model.predict(
    frame.iloc[week], interval=0.9, bounds=(0, None)
)
_, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
ax.fill_between(when[week], lower, upper, alpha=0.25, label="90 % interval")
ax.plot(when[week], prediction, label="prediction")
ax.plot(when[week], rentals.iloc[week], ".", color="0.4", markersize=4, label="rentals")
ax.set(ylabel="rentals in two hours")
ax.legend(ncols=3)
