// What is kept of one sequence so that a changed copy of it can be scored without starting over.
#pragma once

#include "deeptail/model.h"

namespace deeptail {

// One slot is one array of floats, with room for positions [first, length) of the longest sequence:
//   first full block:  rows [length][d_attn + 2 d_kv]  queries, keys, values (they depend on their own token only)
//   other full blocks: rows [length][2 d_kv]           keys, values
//   last block:        rows [length][d_model]          ln1 of its input, where keys are still (last_block.h),
//                      rows [length][2 d_kv]           else keys, values
//   last block:        [d_model]                       its input at the last position
// Queries and keys as attention takes them: turned by their positions. Full blocks are all but the last;
// without `keep_keys` their rows are left out (a plain forward pass needs none).
class SlotLayout {
 public:
  SlotLayout(const ModelConfig& config, std::size_t length, bool keep_keys, std::size_t first = 0)
      : first_(first),
        length_(length),
        d_attn_(config.d_attn()),
        d_kv_(config.d_kv()),
        d_model_(config.d_model),
        still_(config.arch.keys_are_still()),
        keep_keys_(keep_keys) {
    std::size_t offset = 0;
    for (std::size_t layer = 0; layer + 1 < config.n_layers; ++layer) {
      offsets_.push_back(offset);
      if (keep_keys) offset += (length - first) * width(layer);
    }
    last_ = offset;
    residual_ = last_ + (length - first) * last_width();
    size_ = round_up(residual_ + d_model_, kPanel);
  }

  bool keep_keys() const { return keep_keys_; }
  std::size_t first() const { return first_; }
  std::size_t length() const { return length_; }
  std::size_t size() const { return size_; }
  std::size_t n_full_layers() const { return offsets_.size(); }
  std::size_t width(std::size_t layer) const { return (layer == 0 ? d_attn_ : 0) + 2 * d_kv_; }
  std::size_t last_width() const { return still_ ? d_model_ : 2 * d_kv_; }
  // One layer and still keys: a row depends on its token and position alone, so that only changed ones are
  // computed.
  bool rows_stand_alone() const { return offsets_.empty() && still_; }

  template <class T>  // float or const float
  T* row(T* slot, std::size_t layer, std::size_t position) const {
    return slot + offsets_[layer] + (position - first_) * width(layer);
  }
  template <class T>
  T* keys(T* slot, std::size_t layer, std::size_t position) const {
    return row(slot, layer, position) + (layer == 0 ? d_attn_ : 0);
  }
  template <class T>
  T* last_input(T* slot, std::size_t position) const {
    return slot + last_ + (position - first_) * last_width();
  }
  template <class T>
  T* last_residual(T* slot) const {
    return slot + residual_;
  }

  // Copies positions [begin, end) of every part.
  void copy(const float* from, float* to, std::size_t begin, std::size_t end) const {
    const auto copy_rows = [&](std::size_t offset, std::size_t row_width) {
      const std::size_t at = offset + (begin - first_) * row_width;
      std::copy_n(from + at, (end - begin) * row_width, to + at);
    };
    if (keep_keys_)
      for (std::size_t layer = 0; layer < n_full_layers(); ++layer) copy_rows(offsets_[layer], width(layer));
    copy_rows(last_, last_width());
    std::copy_n(last_residual(from), d_model_, last_residual(to));
  }

 private:
  std::size_t first_, length_, d_attn_, d_kv_, d_model_;
  bool still_, keep_keys_;
  std::vector<std::size_t> offsets_;
  std::size_t last_ = 0, residual_ = 0, size_ = 0;
};

// What many sequences begin with, computed once for all of them. Models whose rows stand alone have no use for it.
struct SharedPrefix {
  std::vector<TokenId> tokens;
  SlotLayout layout;  // of those positions
  AlignedVector<float> slot = {};
  std::size_t length() const { return tokens.size(); }
};

// The positions [start, length) of one sequence, which a pass computes; earlier ones come from `prefix`, and those
// after it from `cache`.
struct Segment {
  const TokenId* tokens = nullptr;  // [length]
  std::size_t length = 0;
  std::size_t start = 0;
  const float* cache = nullptr;  // slot of the unchanged sequence, or null when there is nothing between
  const TokenId* cached_tokens = nullptr;  // its tokens: an equal token keeps its first-layer row
  std::size_t cached_length = 0;
  float* fresh = nullptr;     // slot that receives what is computed
  std::size_t first_row = 0;  // in the batch of rows
  const SharedPrefix* prefix = nullptr;

  std::size_t n_shared() const { return prefix == nullptr ? 0 : prefix->length(); }
  std::size_t n_rows() const { return length - start; }
  bool unchanged(std::size_t position) const {
    return position < cached_length && cached_tokens[position] == tokens[position];
  }
};

}  // namespace deeptail
