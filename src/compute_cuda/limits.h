// What the device's kernels take, as plain numbers: for whoever asks before there is a device, or a build for one.
#pragma once

#include <cstddef>

#include "deeptail/architecture.h"

namespace deeptail::cuda {

// The forward engine: heads of up to so many values, inputs of up to so many tokens, d_model a multiple of.
inline constexpr std::size_t kMostHeadValues = 128, kMostPositions = 128, kModelMultiple = 8;

// The fast kernels, which decide in fp16 what is not near a tie: one architecture, the zoo's widths.
inline constexpr std::size_t kFastModel = 128, kFastHeads = 4, kFastMlpMultiple = 64, kMostFastPositions = 64;
inline bool has_fast_kernels(const Architecture& arch, std::size_t d_model, std::size_t n_heads,
                             std::size_t d_head, std::size_t d_mlp) {
  return arch == Architecture{} && d_model == kFastModel && n_heads == kFastHeads &&
         d_head == kFastModel / kFastHeads && d_mlp % kFastMlpMultiple == 0;
}

// The same for wide models, on Hopper.
inline constexpr std::size_t kWideFastModel = 512, kWideFastHeads = 8, kWideFastMlpMultiple = 256;
inline bool has_wide_kernels(const Architecture& arch, std::size_t d_model, std::size_t n_heads,
                             std::size_t d_head, std::size_t d_mlp) {
  return arch == Architecture{} && d_model == kWideFastModel && n_heads == kWideFastHeads &&
         d_head == kWideFastModel / kWideFastHeads && d_mlp % kWideFastMlpMultiple == 0;
}

}  // namespace deeptail::cuda
