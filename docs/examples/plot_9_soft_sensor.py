"""
A soft sensor
=============

The laboratory measures a quality every two hours and reports it with a delay; a soft sensor predicts it every ten
minutes from sensors that cost nothing to read. The data show the usual problems: lags, gross errors of the laboratory,
a drift, and targets that arrive late. The process is synthetic, so the true quality is known at every time.
"""

# %%
# The process
# -----------
# Sixty days in steps of ten minutes. The quality follows the sensors with a lag of half an hour; from day 40 on, a
# fouling heat exchanger changes the effect of the temperature. One laboratory value in twenty is wrong.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from scne import SCNERegressor, SCNRegressor

rng = np.random.default_rng(0)
n = 60 * 144
times = pd.date_range("2025-01-01", periods=n, freq="10min")


def wander(scale, memory):
    """A sensor that wanders around zero."""
    steps = rng.standard_normal(n)
    out = np.empty(n)
    out[0] = steps[0]
    for t in range(1, n):
        out[t] = memory * out[t - 1] + np.sqrt(1 - memory**2) * steps[t]
    return scale * out


sensors = pd.DataFrame(
    {
        "temperature": 180 + wander(4, 0.97),
        "flow": 50 + wander(5, 0.9),
        "pressure": 3 + wander(0.2, 0.95),
    },
    index=times,
)
before = sensors.shift(3, fill_value=sensors.iloc[0].mean()).bfill()
fouling = np.clip((np.arange(n) / 144 - 40) / 10, 0, 1)
quality = (
    90
    + 4 * np.tanh((before["temperature"] - 180) / 4) * (1 - 0.7 * fouling)
    - 0.02 * (before["flow"] - 50) ** 2
    + 5 * (before["pressure"] - 3)
)
laboratory = quality[::12] + 0.3 * rng.standard_normal(n // 12)
wrong = rng.random(n // 12) < 0.05
laboratory[wrong] += rng.choice([-15, 15], wrong.sum())

# %%
# Lags are columns
# ----------------
# Each sensor enters with its values of the last hour. The first thirty days are for the fit.
lags = range(0, 7)
table = pd.concat(
    {
        f"{name} -{10 * lag} min": sensors[name].shift(lag)
        for name in sensors
        for lag in lags
    },
    axis=1,
)
at_laboratory = table.loc[laboratory.index]
train = at_laboratory.index < times[30 * 144]
test = (times >= times[30 * 144]) & (times < times[40 * 144])


def rmse(predicted, when):
    """Error against the true quality, which nobody knows outside of a simulation."""
    return float(np.sqrt(np.mean((predicted - quality[when]) ** 2)))


# %%
# Outliers
# --------
# A robust loss ignores gross errors; squares follow them.
for loss in ("squared", "robust"):
    fitted = SCNERegressor(effort=1, loss=loss, random_state=0).fit(
        at_laboratory[train], laboratory[train]
    )
    print(f"{loss:8}  RMSE {rmse(fitted.predict(table[test]), test):.2f}")

# %%
# The robust model also shows which laboratory values to doubt. They are removed once, so that what follows can use
# squares, whose sums can be updated.
doubt = np.abs(laboratory[train] - fitted.predict(at_laboratory[train])) > 3
print(f"{doubt.sum()} of {train.sum()} values removed, {wrong[train].sum()} are wrong")
clean = at_laboratory[train][~doubt], laboratory[train][~doubt]
base = SCNRegressor(40, scaling="standard", validation_fraction=0.2)
fixed = SCNERegressor(base, n_estimators=3, trend="none", random_state=0).fit(*clean)
updated = SCNERegressor(base, n_estimators=3, trend="none", random_state=0).fit(*clean)

# %%
# Drift and delayed targets
# -------------------------
# From day 30 on the model predicts every ten minutes. A laboratory value arrives four hours after its sample: the row
# that belongs to it is kept until then, and added by `partial_fit`. Older rows fade by a tenth every day. A value far
# outside the 95 % interval is not added, because it is more likely wrong than news.
delay = pd.Timedelta("4h")
predicted = {"fixed": [], "updated": []}
for day in range(30, 60):
    now = slice(times[day * 144], times[min((day + 1) * 144, n) - 1])
    predicted["fixed"].append(fixed.predict(table.loc[now]))
    predicted["updated"].append(updated.predict(table.loc[now]))
    arrived = laboratory[now.start - delay : now.stop - delay]
    rows = at_laboratory.loc[arrived.index]
    _, low, high = updated.predict(rows, interval=0.95)
    width = high - low
    plausible = (arrived > low - width) & (arrived < high + width)
    updated.partial_fit(rows[plausible], arrived[plausible], forgetting=0.9)

later = times >= times[30 * 144]
for name, parts in predicted.items():
    values = np.concatenate(parts)
    errors = [
        rmse(values[k * 144 :][:1440], times[(30 * 144) + k * 144 :][:1440])
        for k in (0, 10, 20)
    ]
    print(
        f"{name:10} RMSE of days 30, 40 and 50 on: "
        + ", ".join(f"{e:.2f}" for e in errors)
    )

# %%
fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
days = np.arange(later.sum()) / 144 + 30
shown = slice(None, None, 12)
ax.plot(days[shown], quality[later][shown], color="0.6", label="true quality")
for name, parts in predicted.items():
    ax.plot(days[shown], np.concatenate(parts)[shown], linewidth=1, label=name)
ax.set(xlabel="day", ylabel="quality", xlim=(50, 56))
ax.legend(ncols=3)

# %%
# A model for the controller
# --------------------------
# One small network is enough for many controllers. The C header needs no library and allocates nothing.
small = SCNRegressor(15, scaling="standard", validation_fraction=0.2, random_state=0)
small.fit(*clean)
header = small.export("c", name="quality")
print(
    f"RMSE {rmse(small.predict(table[test]), test):.2f}, {len(header) / 1000:.0f} kB of C"
)
print(header[header.index("static inline void quality_predict") :][:300])
