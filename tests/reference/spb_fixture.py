#!/usr/bin/env python3
"""Reference values of the SPB loss in 150-digit arithmetic (Debian's python3-mpmath).

    tests/reference/spb_fixture.py tests/data/loss          writes pointwise.csv, asymmetry.csv, alpha.csv
    tests/reference/spb_fixture.py DIR --rows 60000         a denser pointwise.csv, for a wider check by hand

Inputs are the exact values of the doubles printed in the files. The closed form of the paper (eq. Beps_closed) loses
up to 45 digits near p = q and alpha = 1, 2, which leaves more than 60 correct; numerical integration of the definition
(eq. shifted_bregman) confirms a sample of the rows.
"""

import argparse
import itertools
import pathlib
import random

from mpmath import findroot, log, mp, mpf, nstr, quad

mp.dps = 150

ALPHAS_SPECIAL = [0.0, 1.0, 2.0, 1 - 1e-9, 1 + 1e-9, 2 - 1e-9, 2 + 1e-9]
ALPHAS = ALPHAS_SPECIAL + [1e-9, 0.1, 0.5, 0.9, 1 - 1e-5, 1 + 1e-5, 1 - 1e-14, 1.2, 1.5, 1.5 + 1e-9, 1.7, 2 - 1e-5,
                           2 + 1e-5, 2.5, 3.0, 3.7, 4.0, 5.0, 6.5, 7.99, 8.0]
TRUTHS_SPECIAL = [1e-30, 3.3e-9, 0.5]
TRUTHS = TRUTHS_SPECIAL + [1e-25, 7e-20, 1e-15, 2e-12, 1e-9, 1e-6, 1.7e-4, 0.03, 0.25]
NEAR_ONE = [1 + sign * step for step in (1e-3, 1e-6, 1e-9, 1e-12) for sign in (1, -1)]
RATIOS_SPECIAL = [0.0] + NEAR_ONE
RATIOS = RATIOS_SPECIAL + [1.0] + [10.0**k for k in range(-12, 13) if k] + [
    0.3, 0.5, 0.8, 0.88, 0.9, 0.95, 0.97, 0.99, 1.01, 1.03, 1.05, 1.1, 1.12, 1.2, 1.5, 2.0, 3.0]
EPSILONS_SPECIAL = [0.0, 1e-30, 1e-12, 1e-3]
EPSILONS = EPSILONS_SPECIAL + [1e-27, 1e-24, 1e-20, 1e-17, 1e-15, 1e-9, 1e-7, 1e-5]
GAMMAS = [0.0, 0.5, 1.0, 2.0]


def closed_form(alpha, epsilon, q, p):
    """Eq. Beps_closed, Beps_a1 and Beps_a2 of the paper; None stands for infinity."""
    alpha, q, p = mpf(alpha), mpf(q) + mpf(epsilon), mpf(p) + mpf(epsilon)
    if p == 0:
        return None if alpha >= 1 else q ** (2 - alpha) / ((1 - alpha) * (2 - alpha))
    if alpha == 1:
        return (p - q) - q * log(p / q)
    if alpha == 2:
        return log(p / q) + q * (1 / p - 1 / q)
    return ((p ** (2 - alpha) - q ** (2 - alpha)) / (2 - alpha)
            - q * (p ** (1 - alpha) - q ** (1 - alpha)) / (1 - alpha))


def integral(alpha, epsilon, q, p):
    """Eq. shifted_bregman by tanh-sinh quadrature in the logarithm of the shifted argument."""
    alpha, q, p = mpf(alpha), mpf(q) + mpf(epsilon), mpf(p) + mpf(epsilon)
    low, high = log(q), log(p)
    pieces = [low + (high - low) * k / 24 for k in range(25)]
    return quad(lambda x: (mp.exp(x) - q) * mp.exp((1 - alpha) * x), pieces)


def text(value, digits=20):
    return "inf" if value is None else nstr(value, digits, min_fixed=0, max_fixed=0)


def points(rows, rng):
    """All special points, then a seeded draw from the rest of the grid."""
    def valid(point):
        _, _, q, ratio = point
        return q * ratio <= 1

    special = list(filter(valid, itertools.product(ALPHAS_SPECIAL, EPSILONS_SPECIAL, TRUTHS_SPECIAL, RATIOS_SPECIAL)))
    taken = set(special)
    grid = itertools.product(ALPHAS, EPSILONS, TRUTHS, RATIOS)
    rest = [point for point in grid if valid(point) and point not in taken]
    return special + sorted(rng.sample(rest, min(len(rest), max(0, rows - len(special)))))


def write_pointwise(folder, rows):
    rng = random.Random(4)
    lines, checks = ["alpha,epsilon,gamma,truth,estimate,pointwise,weighted"], 0
    for alpha, epsilon, q, ratio in points(rows, rng):
        p = q * ratio
        gamma = rng.choice(GAMMAS)
        value = closed_form(alpha, epsilon, q, p)
        weighted = None if value is None else value * mpf(q) ** (mpf(alpha) - 2 - mpf(gamma))
        if value is not None and p > 0 and rng.random() < 60 / rows:
            with mp.workdps(100):
                expected = integral(alpha, epsilon, q, p)
            assert abs(expected - value) <= mpf("1e-30") * abs(value), (alpha, epsilon, q, p)
            checks += 1
        numbers = [repr(x) for x in (alpha, epsilon, gamma, q, p)]
        lines.append(",".join(numbers + [text(value), text(weighted)]))
    (folder / "pointwise.csv").write_text("\n".join(lines) + "\n")
    print(f"pointwise.csv: {len(lines) - 1} rows, {checks} confirmed by quadrature")


def i_fp(alpha, m):
    return closed_form(alpha, 0, 1, m)


def i_fn(alpha, m):
    return closed_form(alpha, 0, 1, 1 / mpf(m))


def write_asymmetry(folder):
    lines = ["alpha,m,i_fp,i_fn"]
    for alpha, m in itertools.product(ALPHAS, [1 + 1e-9, 1.001, 1.1, 2.0, 10.0, 100.0, 1e6, 1e12]):
        lines.append(",".join([repr(alpha), repr(m), text(i_fp(alpha, m)), text(i_fn(alpha, m))]))
    (folder / "asymmetry.csv").write_text("\n".join(lines) + "\n")


def write_alpha(folder):
    lines = ["ratio,m0,alpha"]
    for ratio, m0 in itertools.product([1.01, 1.5, 2.0, 3.0, 10.0, 1000.0], [1.1, 1.5, 2.0, 10.0, 100.0]):
        low, high = mpf(1.5), mpf(2)
        while i_fn(high, m0) < ratio * i_fp(high, m0):
            high *= 2
        root = findroot(lambda a: log(i_fn(a, m0) / i_fp(a, m0)) - log(mpf(ratio)), (low, high), solver="anderson",
                        tol=mpf("1e-60"))
        lines.append(",".join([repr(ratio), repr(m0), text(root)]))
    (folder / "alpha.csv").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=6500)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    write_pointwise(options.folder, options.rows)
    write_asymmetry(options.folder)
    write_alpha(options.folder)


if __name__ == "__main__":
    main()
