#include "model/families/hf_tensors.h"

#include <algorithm>

namespace deeptail {

namespace {

// [rows, columns] -> [columns, rows], in tiles that stay in L1.
std::vector<float> transposed(const std::vector<float>& from, std::size_t rows, std::size_t columns) {
  constexpr std::size_t kTile = 32;
  std::vector<float> out(from.size());
  for (std::size_t r = 0; r < rows; r += kTile)
    for (std::size_t c = 0; c < columns; c += kTile)
      for (std::size_t i = r; i < std::min(rows, r + kTile); ++i)
        for (std::size_t j = c; j < std::min(columns, c + kTile); ++j)
          out[j * rows + i] = from[i * columns + j];
  return out;
}

}  // namespace

Matrix take_linear(TensorTaker& tensors, const std::string& name, LinearShape shape) {
  Matrix out{.in = shape.in, .out = shape.out};
  out.w = transposed(tensors.take(name + ".weight", {shape.out, shape.in}), shape.out, shape.in);
  if (shape.bias) out.b = tensors.take(name + ".bias", {shape.out});
  return out;
}

Matrix take_conv1d(TensorTaker& tensors, const std::string& name, std::size_t in, std::size_t out) {
  return {in, out, tensors.take(name + ".weight", {in, out}), tensors.take(name + ".bias", {out})};
}

Matrix take_columns(const Matrix& m, std::size_t first, std::size_t n) {
  Matrix out{.in = m.in, .out = n, .w = std::vector<float>(m.in * n)};
  for (std::size_t i = 0; i < m.in; ++i) std::copy_n(m.w.data() + i * m.out + first, n, out.w.data() + i * n);
  if (!m.b.empty()) out.b.assign(m.b.data() + first, m.b.data() + first + n);
  return out;
}

NormWeights take_layer_norm(TensorTaker& tensors, const std::string& name, std::size_t d) {
  return {tensors.take(name + ".weight", {d}), tensors.take(name + ".bias", {d})};
}

NormWeights take_rms_norm(TensorTaker& tensors, const std::string& name, std::size_t d) {
  return {.w = tensors.take(name + ".weight", {d})};
}

std::string prefix_of(const TensorTaker& tensors, const std::string& prefix, const std::string& probe) {
  return tensors.has(probe) && !tensors.has(prefix + probe) ? "" : prefix;
}

Matrix take_head(TensorTaker& tensors, std::initializer_list<const char*> names, const ModelConfig& c,
                 const std::vector<float>& w_e) {
  Matrix out{.in = c.d_model, .out = c.d_vocab};
  const auto found = std::ranges::find_if(names, [&](const char* name) { return tensors.has(name); });
  const std::string name = found == names.end() ? *names.begin() : *found;
  if (!c.arch.tied_head)
    out.w = transposed(tensors.take(name, {c.d_vocab, c.d_model}), c.d_vocab, c.d_model);
  else if (found != names.end() && tensors.take(name, {c.d_vocab, c.d_model}) != w_e)
    throw InputError(
        "{}: tensor {} differs from the embeddings, though tie_word_embeddings is true: expected equal ones, "
        "or "
        "false",
        tensors.where(), name);
  return out;
}

}  // namespace deeptail
