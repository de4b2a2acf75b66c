"""Prints the polynomial of src/compute/gelu-inl.h.

gelu(x) = max(x, 0) - |x|/2 * erfc(|x|/sqrt 2), and erfc(a/sqrt 2) = exp(-a^2/2) * E(a) with E smooth. With
t = 1/(1 + 0.35 a), E is t times a polynomial of degree 8 in t, fitted here by weighted least squares at Chebyshev
nodes; the relative error printed last is the fit's own, in exact arithmetic.
"""

import mpmath as mp
import numpy as np

C, DEGREE, A_MAX = 0.35, 8, 13.5


def scaled_erfc(a):
    a = mp.mpf(a)
    return float(mp.e ** (a * a / 2) * mp.erfc(a / mp.sqrt(2)))


def main():
    mp.mp.dps = 40
    lowest = 1 / (1 + C * A_MAX)
    nodes = np.cos((np.arange(200) + 0.5) * np.pi / 200)
    t = (1 + lowest) / 2 + (1 - lowest) / 2 * nodes
    y = np.array([scaled_erfc(x) for x in (1 / t - 1) / C]) / t
    coefficients = np.linalg.lstsq(np.vander(t, DEGREE + 1) / y[:, None], np.ones(len(t)), rcond=None)[0]
    for power, value in zip(range(DEGREE, -1, -1), coefficients):
        print(f"t^{power}: {np.float32(value):.9g}f")
    a = np.linspace(0, A_MAX, 4001)
    exact = np.array([scaled_erfc(x) for x in a])
    fitted = np.polyval(coefficients, 1 / (1 + C * a)) / (1 + C * a)
    print("largest relative error:", np.max(np.abs(fitted / exact - 1)))


if __name__ == "__main__":
    main()
