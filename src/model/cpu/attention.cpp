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
      d_head_(config.d_head),
      d_attn_(config.d_attn()),
      padded_(round_up(max_length, kPanel)),
      scale_(1.0f / std::sqrt(static_cast<float>(config.d_head))),
      panels_(padded_ * round_up(config.d_head, kPanel)),
      scores_(padded_ * padded_),
      transposed_(padded_ * padded_),
      gathered_(padded_ * config.d_head) {}

void Attention::pack_transposed(std::size_t n, std::size_t k, ConstRows rows) {
  for (std::size_t j = 0; j < n; ++j) {
    float* out = panels_.data() + (j / kPanel) * k * kPanel + j % kPanel;
    for (std::size_t i = 0; i < k; ++i) out[i * kPanel] = rows.row(j)[i];
  }
}

void Attention::pack(std::size_t k, std::size_t n, ConstRows rows) {
  for (std::size_t first = 0; first < n; first += kPanel) {
    float* out = panels_.data() + first * k;
    const std::size_t width = std::min(kPanel, n - first);
    for (std::size_t i = 0; i < k; ++i) std::copy_n(rows.row(i) + first, width, out + i * kPanel);
  }
}

void Attention::product(std::size_t m, ConstRows a, std::size_t k, std::size_t n, Rows out) {
  for (std::size_t first = 0; first < n; first += kPanel)
    gemm_bare_panel(m, a, k, panels_.data() + first * k, std::min(kPanel, n - first),
                    {out.data + first, out.stride});
}

void Attention::forward(ConstRows queries, const KeyRows& keys, Rows z, float* probabilities) {
  const std::size_t n = keys.length, start = keys.start, m = n - start;
  const std::size_t used = round_up(n, kPanel);  // columns of a score row, masked ones included
  for (std::size_t h = 0; h < n_heads_; ++h) {
    float* p = probabilities != nullptr ? probabilities + h * m * padded_ : scores_.data();
    const Rows scores{p, padded_};  // [m, padded]
    const auto gather = [&](std::size_t offset) {
      for (std::size_t j = 0; j < n; ++j)
        std::copy_n(keys.at(j) + offset, d_head_, gathered_.data() + j * d_head_);
    };
    gather(h * d_head_);
    pack_transposed(n, d_head_, {gathered_.data(), d_head_});
    for (std::size_t first = 0; first < n; first += kPanel) {
      // Rows of positions before `first` see none of these keys.
      const std::size_t skip = first > start ? first - start : 0;
      gemm_bare_panel(m - skip, {queries.row(skip) + h * d_head_, queries.stride}, d_head_,
                      panels_.data() + first * d_head_, std::min(kPanel, n - first),
                      {scores.row(skip) + first, padded_});
    }
    for (std::size_t i = 0; i < m; ++i) {
      std::fill(scores.row(i) + start + i + 1, scores.row(i) + used, kMasked);
      softmax(used, scale_, scores.row(i));
    }
    gather(d_attn_ + h * d_head_);
    pack(n, d_head_, {gathered_.data(), d_head_});
    for (std::size_t i = 0; i < m; i += kRowChunk) {
      const std::size_t rows = std::min(kRowChunk, m - i);
      const std::size_t seen = start + i + rows;  // positions the last of these rows sees
      for (std::size_t first = 0; first < d_head_; first += kPanel)
        gemm_bare_panel(rows, scores.from(i), seen, panels_.data() + first * n,
                        std::min(kPanel, d_head_ - first), {z.row(i) + h * d_head_ + first, z.stride});
    }
  }
}

void Attention::backward(std::size_t n, ConstRows qkv, const float* probabilities, ConstRows dz, Rows dqkv) {
  const auto transpose = [&](ConstRows from) {  // [n, n]
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) transposed_[j * padded_ + i] = from.row(i)[j];
    return ConstRows{transposed_.data(), padded_};
  };
  const auto part = [&](auto rows, std::size_t which, std::size_t h) {  // queries 0, keys 1, values 2
    rows.data += which * d_attn_ + h * d_head_;
    return rows;
  };
  for (std::size_t h = 0; h < n_heads_; ++h) {
    const ConstRows p{probabilities + h * n * padded_, padded_};
    const Rows ds{scores_.data(), padded_};
    const ConstRows dz_h{dz.data + h * d_head_, dz.stride};
    pack_transposed(n, d_head_, part(qkv, 2, h));
    product(n, dz_h, d_head_, n, ds);  // dp = dz V^T
    for (std::size_t i = 0; i < n; ++i) softmax_backward(n, scale_, p.row(i), ds.row(i));
    pack(n, d_head_, part(qkv, 1, h));
    product(n, ds, n, d_head_, part(dqkv, 0, h));  // dq = ds K
    pack(n, d_head_, part(qkv, 0, h));
    product(n, transpose(ds), n, d_head_, part(dqkv, 1, h));  // dk = ds^T Q
    pack(n, d_head_, dz_h);
    product(n, transpose(p), n, d_head_, part(dqkv, 2, h));  // dv = p^T dz
  }
}

}  // namespace deeptail
