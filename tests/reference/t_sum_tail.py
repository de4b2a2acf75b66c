"""The tail of a sum of 16 Student-t coordinates, nu = 5, by numerical convolution: what kernels_test.cpp compares with.

    python3 tests/reference/t_sum_tail.py
"""
import numpy as np

STEP, REACH, X = 0.01, 4000.0, 60.0  # what wraps around is below 1e-14
n = int(2 * REACH / STEP)
x = (np.arange(n) - n // 2) * STEP
density = 8.0 / (3.0 * np.pi * np.sqrt(5.0)) * (1.0 + x * x / 5.0) ** -3
density /= density.sum()
total = np.fft.irfft(np.fft.rfft(np.fft.ifftshift(density)) ** 16, n)
total = np.fft.fftshift(total)
above = total[x > X + STEP / 2].sum() + 0.5 * total[np.abs(x - X) < STEP / 2].sum()
print(f"Pr[sum >= {X}] = {above:.6e}")
