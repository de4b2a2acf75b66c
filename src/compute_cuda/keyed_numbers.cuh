// Random numbers on the device: the words of core/random.h to the bit, and from them normal and exponential
// numbers by the CPU's formulas, equal but for the last bits of logarithm, sine and cosine. Runs on the host
// as well, for tests.
#pragma once

#include <Random123/philox.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "core/random.h"

namespace deeptail::cuda {

// Where numbers of one particle's move come from.
struct NumberKey {
  std::uint64_t seed, index;
};
__host__ __device__ inline r123::Philox4x32::ctr_type keyed_words(const NumberKey& key, Stream stream,
                                                                  std::uint32_t block) {
  const PhiloxBlock b = philox_block({key.seed, stream}, key.index, block);
  return r123::Philox4x32()({{b.counter[0], b.counter[1], b.counter[2], b.counter[3]}},
                            {{b.key[0], b.key[1]}});
}
// The numbers of the two slots that a block of words serves.
__host__ __device__ inline std::uint64_t even_slot(const r123::Philox4x32::ctr_type& w) {
  return w[0] | static_cast<std::uint64_t>(w[1]) << 32;
}
__host__ __device__ inline std::uint64_t odd_slot(const r123::Philox4x32::ctr_type& w) {
  return w[2] | static_cast<std::uint64_t>(w[3]) << 32;
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
__host__ __device__ inline void four_normals(const NumberKey& key, Stream stream, std::uint32_t block,
                                             float (&z)[4]) {
  const r123::Philox4x32::ctr_type w = keyed_words(key, stream, block);
  normal_pair(w[0], w[1], z[0], z[1]);
  normal_pair(w[2], w[3], z[2], z[3]);
}

// A sum of `count` unit exponentials for one dimension: minus the log of a product of uniforms.
__host__ __device__ inline double exponentials(const NumberKey& key, Stream stream, std::uint32_t dimension,
                                               std::uint32_t count) {
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
