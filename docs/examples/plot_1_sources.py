"""
What each source contributes
============================

Fine particles (PM2.5) at a station in Beijing, from three sources: the station's other pollutant sensors, the nearest
weather station, and the calendar. With one network for each source, as in the paper, the contribution of each is
exact.
"""

# %%
# The sample ships with the package. The test rows are a later year.
from scne import (
    GroupContributionDisplay,
    MemberCorrelationDisplay,
    SCNERegressor,
    SCNRegressor,
)
from scne.datasets import load_beijing_air

air = load_beijing_air(as_frame=True)
air.groups

# %%
# One network for each group. Some rows are held out; the number of nodes, lambda and the ridge are chosen on them.
base = SCNRegressor(60, scaling="standard", validation_fraction=0.2, search_rows=5_000)
model = SCNERegressor(
    base, groups=air.groups, networks="per group", trend="none", random_state=0
).fit(air.X_train, air.y_train)
print(f"R^2 on the later year {model.score(air.X_test, air.y_test):.3f}")
print(f"nodes {model.n_hidden_}, lambda {model.decorrelation_:.3f} of at most 1.5")

# %%
# Leaving out a network, with all other weights solved again: exact, from the Gram matrix, without reading any rows.
GroupContributionDisplay.from_estimator(model)

# %%
# Shuffling columns of the test rows answers another question: how much this model uses them.
GroupContributionDisplay.from_estimator(
    model,
    air.X_test[:3000],
    air.y_test[:3000],
    kind="columns",
    largest=8,
    random_state=0,
)

# %%
# Near the joint fit, networks are terms of a sum rather than independent estimates, so their outputs correlate little.
MemberCorrelationDisplay.from_estimator(model, air.X_test)
