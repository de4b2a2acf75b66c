#include "compute_cuda/dense_block.h"

#include <algorithm>

namespace deeptail::cuda {

namespace {

// Columns in groups of `size`, each followed by zeros up to `padded`; the bias likewise, zeros where there is none.
Matrix with_wider_columns(const Matrix& m, std::size_t size, std::size_t padded) {
  const std::size_t groups = m.out / size;
  Matrix out{.in = m.in, .out = groups * padded};
  out.w.resize(out.in * out.out), out.b.resize(out.out);
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t row = 0; row < m.in; ++row)
      std::copy_n(m.w.data() + row * m.out + g * size, size, out.w.data() + row * out.out + g * padded);
    if (!m.b.empty()) std::copy_n(m.b.data() + g * size, size, out.b.data() + g * padded);
  }
  return out;
}

// The same of rows. The bias is as it was.
Matrix with_wider_rows(const Matrix& m, std::size_t size, std::size_t padded) {
  const std::size_t groups = m.in / size;
  Matrix out{.in = groups * padded, .out = m.out, .w = std::vector<float>(groups * padded * m.out), .b = m.b};
  for (std::size_t g = 0; g < groups; ++g)
    std::copy_n(m.w.data() + g * size * m.out, size * m.out, out.w.data() + g * padded * m.out);
  out.b.resize(m.out);
  return out;
}

// Columns of both in turn.
Matrix in_turn(const Matrix& first, const Matrix& second) {
  Matrix out{.in = first.in, .out = 2 * first.out};
  out.w.resize(out.in * out.out), out.b.resize(out.out);
  const auto weave = [&](const std::vector<float>& from, std::size_t side, std::vector<float>& to) {
    for (std::size_t i = 0; i < from.size(); ++i) to[2 * i + side] = from[i];
  };
  weave(first.w, 0, out.w), weave(second.w, 1, out.w);
  weave(first.b, 0, out.b), weave(second.b, 1, out.b);
  return out;
}

void move_norm(NormWeights& from, std::size_t d, std::vector<float>& w, std::vector<float>& b) {
  w = std::move(from.w), b = std::move(from.b);
  b.resize(d, 0.0f);
}

}  // namespace

std::size_t device_head_size(std::size_t d_head) {
  for (const std::size_t size : {16, 32, 64, 128})
    if (d_head <= size) return size;
  return d_head;
}
std::size_t device_mlp_size(std::size_t d_mlp) { return (d_mlp + 7) / 8 * 8; }

DenseBlock dense_block(const ModelConfig& c, BlockWeights b, bool last) {
  // The last block answers for one query, to whose scores the bias of keys that do not turn adds the same: left
  // out, as on the CPU.
  if (last && c.arch.keys_are_still()) std::fill(b.w_k.b.begin(), b.w_k.b.end(), 0.0f);
  const std::size_t head = device_head_size(c.d_head), d_mlp = device_mlp_size(c.d_mlp);
  const auto heads = [&](const Matrix& m) { return with_wider_columns(m, c.d_head, head); };
  const Matrix q = heads(b.w_q), k = heads(b.w_k), v = heads(b.w_v);
  Matrix qkv = side_by_side({&q, &k, &v});
  Matrix o = with_wider_rows(b.w_o, c.d_head, head);
  Matrix in = with_wider_columns(b.w_in, c.d_mlp, d_mlp);
  if (c.arch.mlp == Architecture::Mlp::kSwiGlu)
    in = in_turn(with_wider_columns(b.w_gate, c.d_mlp, d_mlp), in);
  Matrix down = with_wider_rows(b.w_out, c.d_mlp, d_mlp);
  DenseBlock out;
  move_norm(b.ln1, c.d_model, out.ln1_w, out.ln1_b);
  move_norm(b.ln2, c.d_model, out.ln2_w, out.ln2_b);
  if (c.arch.qk_norm) {
    out.q_norm = std::move(b.q_norm.w), out.k_norm = std::move(b.k_norm.w);
    out.q_norm.resize(head, 0.0f), out.k_norm.resize(head, 0.0f);
  }
  out.w_qkv = std::move(qkv.w), out.b_qkv = std::move(qkv.b);
  out.w_o = std::move(o.w), out.b_o = std::move(o.b);
  out.w_in = std::move(in.w), out.b_in = std::move(in.b);
  out.w_out = std::move(down.w), out.b_out = std::move(down.b);
  return out;
}

std::vector<float> transposed(const std::vector<float>& w, std::size_t rows, std::size_t columns) {
  constexpr std::size_t kTile = 32;
  std::vector<float> out(w.size());
  for (std::size_t r = 0; r < rows; r += kTile)
    for (std::size_t c = 0; c < columns; c += kTile)
      for (std::size_t i = r; i < std::min(rows, r + kTile); ++i)
        for (std::size_t j = c; j < std::min(columns, c + kTile); ++j) out[j * rows + i] = w[i * columns + j];
  return out;
}

}  // namespace deeptail::cuda
