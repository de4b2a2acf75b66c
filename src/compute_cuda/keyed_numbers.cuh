// Random numbers on the device: the words of core/random.h to the bit, and from them normal and exponential
// numbers by the CPU's formulas, equal but for the last bits of logarithm, sine and cosine. Runs on the host
// as well, for tests.
#pragma once

#include <Random123/philox.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

namespace deeptail::cuda {

// Where numbers of one particle's move come from.
struct NumberKey {
  std::uint64_t seed, index;
};
__host__ __device__ inline r123::Philox4x32::ctr_type keyed_words(const NumberKey& key, std::uint32_t stream,
                                                                  std::uint32_t block) {
  const r123::Philox4x32::ctr_type counter = {
      {static_cast<std::uint32_t>(key.index), static_cast<std::uint32_t>(key.index >> 32), block, stream}};
  const r123::Philox4x32::key_type words = {
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
  return r123::Philox4x32()(counter, words);
}

// As step_index of core/random.h.
__host__ __device__ inline std::uint64_t move_index(std::uint64_t level, std::uint64_t step,
                                                    std::uint64_t particle) {
  return level << 50 | step << 24 | particle;
}

// In [0, 1), from 64 bits in two words.
__host__ __device__ inline double unit_double(std::uint32_t low, std::uint32_t high) {
  const std::uint64_t u = low | static_cast<std::uint64_t>(high) << 32;
  return static_cast<double>(u >> 11) * 0x1.0p-53;
}

// Two standard normals by Box and Muller, as fill_normals.
__host__ __device__ inline void normal_pair(std::uint32_t w0, std::uint32_t w1, float& first, float& second) {
  const float u = fminf(fmaf(static_cast<float>(w0 >> 1), 0x1p-31f, 0x1p-32f), 1.0f);
  const float r = sqrtf(-2.0f * logf(u));
  float sine, cosine;
  sincosf(static_cast<float>(w1 >> 1) * (0x1p-31f * 6.283185307f), &sine, &cosine);
  first = r * cosine;
  second = r * sine;
}
// Numbers 4 block to 4 block + 3 of a row of normals.
__host__ __device__ inline void four_normals(const NumberKey& key, std::uint32_t stream, std::uint32_t block,
                                             float (&z)[4]) {
  const r123::Philox4x32::ctr_type w = keyed_words(key, stream, block);
  normal_pair(w[0], w[1], z[0], z[1]);
  normal_pair(w[2], w[3], z[2], z[3]);
}

// A sum of `count` unit exponentials for one dimension: minus the log of a product of uniforms.
__host__ __device__ inline double exponentials(const NumberKey& key, std::uint32_t stream,
                                               std::uint32_t dimension, std::uint32_t count) {
  const std::uint32_t blocks = (count + 3) / 4;
  double product = 1.0, sum = 0.0;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const r123::Philox4x32::ctr_type w = keyed_words(key, stream, dimension * blocks + block);
    const std::uint32_t left = count - 4 * block;
    for (std::uint32_t i = 0; i < 4; ++i)
      if (i < left) product *= (static_cast<double>(w[i]) + 0.5) * 0x1p-32;
    if (product < 1e-200) sum -= log(product), product = 1.0;
  }
  return sum - log(product);
}

}  // namespace deeptail::cuda
