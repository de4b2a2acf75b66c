"""What README promises of an installed package: run anywhere but in the source's folder."""

import deeptail as dt

e = dt.estimate("dt-1l", "hex", " the", budget=3e4, seed=5)
low, high = e.interval
assert low <= e.p <= high, e
print(dt.__version__ if hasattr(dt, "__version__") else "", e.p, e.interval)
assert dt.law("hex") is not None
found = dt.split(dt.law("hex"), lambda tokens: tokens[:, -16:].sum(axis=1) / 1000.0 - 3.0, budget=4000, seed=1)
assert found.p > 0.0
