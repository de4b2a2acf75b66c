#include "model/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deeptail {

namespace {
constexpr float kMasked = -std::numeric_limits<float>::infinity();
// Rows handled at once where the causal mask shortens the sum; a multiple of every register tile.
constexpr std::size_t kRowChunk = 12;
}  // namespace

Attention::Attention(const ModelConfig& config, std::size_t max_length)
    : n_heads_(config.n_heads),
      kv_groups_(config.arch.kv_groups),
      d_head_(config.d_head),
      d_attn_(config.d_attn()),
      d_kv_(config.d_kv()),
      padded_(round_up(max_length, kPanel)),
      panels_(padded_ * round_up(config.d_head, kPanel)),
      value_panels_(panels_.size()),
      scores_(padded_ * padded_),
      transposed_(padded_ * padded_),
      gathered_(padded_ * config.d_head) {}

void Attention::pack_transposed(std::size_t n, std::size_t k, ConstRows rows, Panels& panels) {
  for (std::size_t j = 0; j < n; ++j) {
    float* out = panels.data() + (j / kPanel) * k * kPanel + j % kPanel;
    for (std::size_t i = 0; i < k; ++i) out[i * kPanel] = rows.row(j)[i];
  }
}

void Attention::pack(std::size_t k, std::size_t n, ConstRows rows, Panels& panels) {
  for (std::size_t first = 0; first < n; first += kPanel) {
    float* out = panels.data() + first * k;
    const std::size_t width = std::min(kPanel, n - first);
    for (std::size_t i = 0; i < k; ++i) std::copy_n(rows.row(i) + first, width, out + i * kPanel);
  }
}

void Attention::product(std::size_t m, ConstRows a, std::size_t k, std::size_t n, Rows out) {
  for (std::size_t first = 0; first < n; first += kPanel)
    gemm_bare_panel(m, a, k, panels_.data() + first * k, std::min(kPanel, n - first),
                    {out.data + first, out.stride});
}

void Attention::gather(const KeyRows& keys, std::size_t offset) {
  for (std::size_t j = 0; j < keys.length; ++j)
    std::copy_n(keys.at(j) + offset, d_head_, gathered_.data() + j * d_head_);
}

// One head, its keys and values packed. queries: [m, d_head], z likewise.
void Attention::head_forward(ConstRows queries, const KeyRows& keys, float scale, Rows scores, Rows z) {
  const std::size_t n = keys.length, start = keys.start, m = n - start;
  const std::size_t used = round_up(n, kPanel);  // columns of a score row, masked ones included
  for (std::size_t first = 0; first < n; first += kPanel) {
    // Rows of positions before `first` see none of these keys.
    const std::size_t skip = first > start ? first - start : 0;
    gemm_bare_panel(m - skip, queries.from(skip), d_head_, panels_.data() + first * d_head_,
                    std::min(kPanel, n - first), {scores.row(skip) + first, padded_});
  }
  for (std::size_t i = 0; i < m; ++i) {
    std::fill(scores.row(i) + start + i + 1, scores.row(i) + used, kMasked);
    softmax(used, scale, scores.row(i));
  }
  for (std::size_t i = 0; i < m; i += kRowChunk) {
    const std::size_t rows = std::min(kRowChunk, m - i);
    const std::size_t seen = start + i + rows;  // positions the last of these rows sees
    for (std::size_t first = 0; first < d_head_; first += kPanel)
      gemm_bare_panel(rows, scores.from(i), seen, value_panels_.data() + first * n,
                      std::min(kPanel, d_head_ - first), {z.row(i) + first, z.stride});
  }
}

void Attention::forward(ConstRows queries, const KeyRows& keys, float scale, Rows z, float* probabilities) {
  const std::size_t n = keys.length, m = n - keys.start;
  for (std::size_t h = 0; h < n_heads_; ++h) {
    if (h % kv_groups_ == 0) {
      const std::size_t offset = h / kv_groups_ * d_head_;
      gather(keys, offset);
      pack_transposed(n, d_head_, {gathered_.data(), d_head_}, panels_);
      gather(keys, d_kv_ + offset);
      pack(n, d_head_, {gathered_.data(), d_head_}, value_panels_);
    }
    float* p = probabilities != nullptr ? probabilities + h * m * padded_ : scores_.data();
    head_forward({queries.data + h * d_head_, queries.stride}, keys, scale, {p, padded_},
                 {z.data + h * d_head_, z.stride});
  }
}

// gathered_: [n, d_head] into the columns of a key head, to which several query heads add.
void Attention::add_heads(std::size_t n, std::size_t offset, bool first, Rows dqkv) {
  for (std::size_t j = 0; j < n; ++j) {
    const float* from = gathered_.data() + j * d_head_;
    float* to = dqkv.row(j) + offset;
    for (std::size_t i = 0; i < d_head_; ++i) to[i] = first ? from[i] : to[i] + from[i];
  }
}

void Attention::backward(std::size_t n, ConstRows qkv, float scale, const float* probabilities, ConstRows dz,
                         Rows dqkv) {
  const auto transpose = [&](ConstRows from) {  // [n, n]
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) transposed_[j * padded_ + i] = from.row(i)[j];
    return ConstRows{transposed_.data(), padded_};
  };
  const auto columns = [](auto rows, std::size_t first) {
    rows.data += first;
    return rows;
  };
  for (std::size_t h = 0; h < n_heads_; ++h) {
    const std::size_t group = h / kv_groups_ * d_head_, q = h * d_head_, k = d_attn_ + group, v = k + d_kv_;
    const bool first = h % kv_groups_ == 0;
    const ConstRows p{probabilities + h * n * padded_, padded_}, dz_h = columns(dz, q);
    const Rows ds{scores_.data(), padded_}, sum{gathered_.data(), d_head_};
    pack_transposed(n, d_head_, columns(qkv, v), panels_);
    product(n, dz_h, d_head_, n, ds);  // dp = dz V^T
    for (std::size_t i = 0; i < n; ++i) softmax_backward(n, scale, p.row(i), ds.row(i));
    pack(n, d_head_, columns(qkv, k), panels_);
    product(n, ds, n, d_head_, columns(dqkv, q));  // dq = ds K
    pack(n, d_head_, columns(qkv, q), panels_);
    product(n, transpose(ds), n, d_head_, sum);  // dk = ds^T Q
    add_heads(n, k, first, dqkv);
    pack(n, d_head_, dz_h, panels_);
    product(n, transpose(p), n, d_head_, sum);  // dv = p^T dz
    add_heads(n, v, first, dqkv);
  }
}

}  // namespace deeptail
