// What is kept of one text that grows: keys and values as attend_kept takes them.
#pragma once

#include <algorithm>

#include "deeptail/model.h"

namespace deeptail {

// One slot is one array of floats, with room for positions [first, length):
//   every block whose keys are formed:  per key head, keys [positions / 16][d_head][16] and values [positions][d_head]
//   the last block where they are not:  rows [positions][d_model], ln1 of its input (last_block.h)
// Keys as attention takes them: turned by their positions.
class KeptLayout {
 public:
  KeptLayout(const ModelConfig& config, std::size_t length, std::size_t first = 0)
      : first_(first),
        n_layers_(config.n_layers),
        n_kv_heads_(config.n_kv_heads()),
        d_head_(config.d_head),
        d_model_(config.d_model),
        carried_(config.arch.keys_are_still()),
        head_size_(round_up(length - first, kPanel) * config.d_head) {
    const std::size_t rows = carried_ ? (length - first) * d_model_ : 0;
    size_ = round_up(n_key_layers() * layer_size() + rows + kKeptPad, kPanel);
  }

  std::size_t size() const { return size_; }
  std::size_t first() const { return first_; }
  // Blocks whose keys are formed: all, or all but the last.
  std::size_t n_key_layers() const { return n_layers_ - (carried_ ? 1 : 0); }

  // Positions [first, end) as attention reads them.
  KeptKeys keys(const float* slot, std::size_t layer, std::size_t end) const {
    const float* at = slot + layer * layer_size();
    return {at, at + n_kv_heads_ * head_size_, end - first_, head_size_};
  }
  // k, v: [n_kv_heads, d_head] of one position.
  void keep(float* slot, std::size_t layer, std::size_t position, const float* k, const float* v) const {
    float* at = slot + layer * layer_size();
    const std::size_t row = position - first_;
    for (std::size_t h = 0; h < n_kv_heads_; ++h) {
      float* key = at + h * head_size_ + row / kPanel * d_head_ * kPanel + row % kPanel;
      for (std::size_t i = 0; i < d_head_; ++i) key[i * kPanel] = k[h * d_head_ + i];
      std::copy_n(v + h * d_head_, d_head_, at + (n_kv_heads_ + h) * head_size_ + row * d_head_);
    }
  }
  template <class T>  // float or const float
  T* carried_row(T* slot, std::size_t position) const {
    return slot + n_key_layers() * layer_size() + (position - first_) * d_model_;
  }

  // Positions [first, end).
  void copy(const float* from, float* to, std::size_t end) const {
    const std::size_t rows = end - first_;
    for (std::size_t part = 0; part < n_key_layers() * 2 * n_kv_heads_; ++part) {
      // Keys in whole panels; of values that copies a few rows too many.
      std::copy_n(from + part * head_size_, round_up(rows, kPanel) * d_head_, to + part * head_size_);
    }
    if (carried_) std::copy_n(carried_row(from, first_), rows * d_model_, carried_row(to, first_));
  }

 private:
  std::size_t layer_size() const { return 2 * n_kv_heads_ * head_size_; }

  std::size_t first_, n_layers_, n_kv_heads_, d_head_, d_model_;
  bool carried_;
  std::size_t head_size_, size_ = 0;
};

// What texts begin with, computed once for all of them.
struct KeptPrefix {
  std::vector<TokenId> tokens;
  KeptLayout layout;  // of those positions
  AlignedVector<float> slot = {};
};

}  // namespace deeptail
