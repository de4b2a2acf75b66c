// Settings shared by the files that Highway compiles once per instruction set. Include before any Highway
// header.
#pragma once

// The baseline, SSE4, AVX2 and AVX-512 are enough: the sets between them change nothing for these kernels.
// Vectors of unknown length (SVE, RISC-V) cannot stand in arrays of accumulators.
// A program runs the best set of its machine and no other, so the sanitizers get one beside the baseline: the
// same source, half the time to compile.
#ifdef DEEPTAIL_SANITIZED
#define DEEPTAIL_UNUSED_TARGETS (HWY_SSE4 | HWY_AVX3)
#else
#define DEEPTAIL_UNUSED_TARGETS 0
#endif
#define HWY_DISABLED_TARGETS                                                             \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | \
   DEEPTAIL_UNUSED_TARGETS)
