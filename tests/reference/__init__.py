"""The paper in plain NumPy: a second implementation for the tests to compare the package with.

Written from the text of Wang and Cui, "Stochastic configuration networks ensemble for large-scale data analytics",
and from nothing else: no line imports the package, and nothing is optimised. Each function carries the numbers of its
equations. Where the text leaves a choice open, the function says so under "Open in the paper".
"""
