"""The paper in plain NumPy: a second implementation for the tests to compare the package with.

Written from the text of Wang and Cui, "Stochastic configuration networks ensemble for large-scale data analytics": no
line imports the package, and nothing is optimised. Each function carries the numbers of its equations. Where the text
leaves a choice open, the function says so under "Open in the paper".

The arithmetic of least squares in `scn` (`unit_columns`, `fit_residuals`) was refined after a first comparison: Y - H
beta with a plain pseudo-inverse chose other nodes than the package on one column, and in four such cases, worked out
with 60 digits, the plain form was the one that was off.
"""
