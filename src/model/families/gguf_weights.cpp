// The names of GGUF files. Matrices are [out, in]; the converters have put the layouts of all families into one:
// queries, keys and values apart, or as [q | k | v] in attn_qkv.
#include <algorithm>
#include <functional>

#include "model/families/rows.h"

namespace deeptail {

namespace {

enum class Bias { kNone, kWhereThere, kRequired };

// rows: [out, in], of which output o is row row_of(o). Tiles, so that both sides stay in the cache.
template <class RowOf>
Matrix turned(std::size_t in, std::size_t out, const float* rows, RowOf row_of) {
  constexpr std::size_t kTile = 32;
  Matrix m{.in = in, .out = out, .w = std::vector<float>(in * out)};
  for (std::size_t i0 = 0; i0 < in; i0 += kTile)
    for (std::size_t o = 0; o < out; ++o) {
      const float* row = rows + row_of(o) * in;
      for (std::size_t i = i0; i < std::min(in, i0 + kTile); ++i) m.w[i * out + o] = row[i];
    }
  return m;
}

std::size_t same_row(std::size_t o) { return o; }

bool has_bias(TensorTaker& tensors, const std::string& name, Bias bias) {
  return bias == Bias::kRequired || (bias == Bias::kWhereThere && tensors.has(name + ".bias"));
}

template <class RowOf>
Matrix gguf_matrix(TensorTaker& tensors, const std::string& name, std::size_t in, std::size_t out, Bias bias,
                   RowOf row_of) {
  Matrix m = turned(in, out, tensors.take(name + ".weight", {out, in}).data(), row_of);
  if (!has_bias(tensors, name, bias)) return m;
  const auto b = tensors.take(name + ".bias", {out});
  m.b.resize(out);
  for (std::size_t o = 0; o < out; ++o) m.b[o] = b[row_of(o)];
  return m;
}

Matrix gguf_matrix(TensorTaker& tensors, const std::string& name, std::size_t in, std::size_t out,
                   Bias bias) {
  return gguf_matrix(tensors, name, in, out, bias, same_row);
}

NormWeights gguf_norm(const ModelConfig& c, TensorTaker& tensors, const std::string& name) {
  NormWeights norm{.w = tensors.take(name + ".weight", {c.d_model})};
  if (c.arch.norm == Architecture::Norm::kLayer) norm.b = tensors.take(name + ".bias", {c.d_model});
  return norm;
}

EndWeights gguf_ends(const ModelConfig& c, TensorTaker& tensors) {
  EndWeights out;
  out.w_e = tensors.take("token_embd.weight", {c.d_vocab, c.d_model});
  if (c.arch.positions == Architecture::Positions::kLearned)
    out.w_pos = tensors.take("position_embd.weight", {c.n_ctx, c.d_model});
  out.ln_final = gguf_norm(c, tensors, "output_norm");
  out.w_u = {.in = c.d_model, .out = c.d_vocab};
  if (!c.arch.tied_head) out.w_u = gguf_matrix(tensors, "output", c.d_model, c.d_vocab, Bias::kNone);
  return out;
}

std::string gguf_block_name(std::size_t layer) { return fmt::format("blk.{}.", layer); }

// [q | k | v]: d_attn + 2 d_kv rows.
void take_joined_qkv(const ModelConfig& c, TensorTaker& tensors, const std::string& name, BlockWeights& out) {
  const std::size_t sizes[] = {c.d_attn(), c.d_kv(), c.d_kv()}, n = c.d_attn() + 2 * c.d_kv();
  const auto w = tensors.take(name + ".weight", {n, c.d_model}), b = tensors.take(name + ".bias", {n});
  std::size_t first = 0;
  Matrix* const parts[] = {&out.w_q, &out.w_k, &out.w_v};
  for (std::size_t i = 0; i < 3; ++i) {
    *parts[i] = turned(c.d_model, sizes[i], w.data() + first * c.d_model, same_row);
    parts[i]->b.assign(b.begin() + static_cast<std::ptrdiff_t>(first),
                       b.begin() + static_cast<std::ptrdiff_t>(first + sizes[i]));
    first += sizes[i];
  }
}

// GPT-2 and GPT-NeoX: biases everywhere.
BlockWeights gguf_gpt_block(const ModelConfig& c, TensorTaker& tensors, std::size_t layer) {
  const std::string at = gguf_block_name(layer);
  BlockWeights out;
  out.ln1 = gguf_norm(c, tensors, at + "attn_norm");
  out.ln2 = gguf_norm(c, tensors, at + "ffn_norm");
  take_joined_qkv(c, tensors, at + "attn_qkv", out);
  out.w_o = gguf_matrix(tensors, at + "attn_output", c.d_attn(), c.d_model, Bias::kRequired);
  out.w_in = gguf_matrix(tensors, at + "ffn_up", c.d_model, c.d_mlp, Bias::kRequired);
  out.w_out = gguf_matrix(tensors, at + "ffn_down", c.d_mlp, c.d_model, Bias::kRequired);
  return out;
}

// What the families of Llama's form differ in.
struct LlamaForm {
  bool pairs;  // rows of queries and keys stand for rotation by neighbouring pairs
  Bias qkv, others;
};

BlockWeights llama_form_block(const ModelConfig& c, TensorTaker& tensors, std::size_t layer, LlamaForm form) {
  const std::string at = gguf_block_name(layer);
  // Of the values that turn, value j of half s of a head is row 2j + s of that head where pairs are neighbours.
  const auto halves = [&, half = c.arch.rotary_dims() / 2](std::size_t o) {
    const std::size_t i = o % c.d_head;
    return form.pairs && i < 2 * half ? o - i + 2 * (i % half) + i / half : o;
  };
  BlockWeights out;
  out.ln1 = gguf_norm(c, tensors, at + "attn_norm");
  out.ln2 = gguf_norm(c, tensors, at + "ffn_norm");
  if (c.arch.qk_norm) {
    out.q_norm.w = tensors.take(at + "attn_q_norm.weight", {c.d_head});
    out.k_norm.w = tensors.take(at + "attn_k_norm.weight", {c.d_head});
  }
  out.w_q = gguf_matrix(tensors, at + "attn_q", c.d_model, c.d_attn(), form.qkv, halves);
  out.w_k = gguf_matrix(tensors, at + "attn_k", c.d_model, c.d_kv(), form.qkv, halves);
  out.w_v = gguf_matrix(tensors, at + "attn_v", c.d_model, c.d_kv(), form.qkv);
  out.w_o = gguf_matrix(tensors, at + "attn_output", c.d_attn(), c.d_model, form.others);
  out.w_gate = gguf_matrix(tensors, at + "ffn_gate", c.d_model, c.d_mlp, form.others);
  out.w_in = gguf_matrix(tensors, at + "ffn_up", c.d_model, c.d_mlp, form.others);
  out.w_out = gguf_matrix(tensors, at + "ffn_down", c.d_mlp, c.d_model, form.others);
  return out;
}

BlockWeights gguf_llama_block(const ModelConfig& c, TensorTaker& tensors, std::size_t layer) {
  return llama_form_block(c, tensors, layer,
                          {.pairs = true, .qkv = Bias::kWhereThere, .others = Bias::kWhereThere});
}
BlockWeights gguf_qwen2_block(const ModelConfig& c, TensorTaker& tensors, std::size_t layer) {
  return llama_form_block(c, tensors, layer, {.pairs = false, .qkv = Bias::kRequired, .others = Bias::kNone});
}
BlockWeights gguf_qwen3_block(const ModelConfig& c, TensorTaker& tensors, std::size_t layer) {
  return llama_form_block(c, tensors, layer, {.pairs = false, .qkv = Bias::kNone, .others = Bias::kNone});
}

}  // namespace

std::vector<Family> gguf_families() {
  const auto row = [](const char* name, auto take_block) {
    return Family{.name = name,
                  .read = nullptr,  // gguf_config.cpp
                  .take_ends = gguf_ends,
                  .take_block = take_block,
                  .buffers = {"rope_freqs.weight"}};  // in the frequencies already
  };
  return {row("gguf-gpt2", gguf_gpt_block), row("gguf-gptneox", gguf_gpt_block),
          row("gguf-llama", gguf_llama_block), row("gguf-qwen2", gguf_qwen2_block),
          row("gguf-qwen3", gguf_qwen3_block)};
}

}  // namespace deeptail
