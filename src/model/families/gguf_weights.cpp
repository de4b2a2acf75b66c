// The names of GGUF files. Converters have put the layouts of all families into one: matrices are [out, in], and
// queries, keys and values are apart or, as [q | k | v], in attn_qkv.
#include <algorithm>

#include "model/families/hf_tensors.h"
#include "model/families/rows.h"

namespace deeptail {

namespace {

NormWeights gguf_norm(const ModelConfig& c, TensorTaker& tensors, const std::string& name) {
  return c.arch.norm == Architecture::Norm::kLayer ? take_layer_norm(tensors, name, c.d_model)
                                                   : take_rms_norm(tensors, name, c.d_model);
}

EndWeights gguf_ends(const ModelConfig& c, TensorTaker& tensors) {
  EndWeights out;
  out.w_e = tensors.take("token_embd.weight", {c.d_vocab, c.d_model});
  if (c.arch.positions == Architecture::Positions::kLearned)
    out.w_pos = tensors.take("position_embd.weight", {c.n_ctx, c.d_model});
  out.ln_final = gguf_norm(c, tensors, "output_norm");
  out.w_u = take_head(tensors, {"output.weight"}, c, out.w_e);
  return out;
}

// Llama's rows are written for rotation by neighbouring pairs: of the values of a head that turn, row 2j + s is
// value j of half s. Here they turn by halves.
void put_pairs_into_halves(const ModelConfig& c, Matrix& m) {
  const std::size_t half = c.arch.rotary_dims() / 2;
  std::vector<float> head(c.d_head);
  const auto reorder = [&](std::vector<float>& values) {  // [any, heads, d_head]
    for (std::size_t first = 0; first < values.size(); first += c.d_head) {
      std::copy_n(values.data() + first, c.d_head, head.data());
      for (std::size_t i = 0; i < 2 * half; ++i) values[first + i] = head[2 * (i % half) + i / half];
    }
  };
  reorder(m.w);
  reorder(m.b);
}

void take_qkv(const ModelConfig& c, TensorTaker& tensors, const std::string& at, BlockWeights& out) {
  out.w_q = take_linear(tensors, at + "attn_q", {c.d_model, c.d_attn(), c.qkv_bias});
  out.w_k = take_linear(tensors, at + "attn_k", {c.d_model, c.d_kv(), c.qkv_bias});
  out.w_v = take_linear(tensors, at + "attn_v", {c.d_model, c.d_kv(), c.qkv_bias});
  if (c.family != kGgufLlama) return;
  put_pairs_into_halves(c, out.w_q);
  put_pairs_into_halves(c, out.w_k);
}

void take_joined_qkv(const ModelConfig& c, TensorTaker& tensors, const std::string& at, BlockWeights& out) {
  const Matrix all =
      take_linear(tensors, at + "attn_qkv", {c.d_model, c.d_attn() + 2 * c.d_kv(), c.qkv_bias});
  out.w_q = take_columns(all, 0, c.d_attn());
  out.w_k = take_columns(all, c.d_attn(), c.d_kv());
  out.w_v = take_columns(all, c.d_attn() + c.d_kv(), c.d_kv());
}

BlockWeights gguf_block(const ModelConfig& c, TensorTaker& tensors, std::size_t layer) {
  const std::string at = fmt::format("blk.{}.", layer);
  const bool gated = c.arch.mlp == Architecture::Mlp::kSwiGlu;
  BlockWeights out;
  out.ln1 = gguf_norm(c, tensors, at + "attn_norm");
  out.ln2 = gguf_norm(c, tensors, at + "ffn_norm");
  if (c.arch.qk_norm) {
    out.q_norm = take_rms_norm(tensors, at + "attn_q_norm", c.d_head);
    out.k_norm = take_rms_norm(tensors, at + "attn_k_norm", c.d_head);
  }
  if (gated)
    take_qkv(c, tensors, at, out);
  else
    take_joined_qkv(c, tensors, at, out);
  out.w_o = take_linear(tensors, at + "attn_output", {c.d_attn(), c.d_model, c.o_bias});
  if (gated) out.w_gate = take_linear(tensors, at + "ffn_gate", {c.d_model, c.d_mlp, c.mlp_bias});
  out.w_in = take_linear(tensors, at + "ffn_up", {c.d_model, c.d_mlp, c.mlp_bias});
  out.w_out = take_linear(tensors, at + "ffn_down", {c.d_mlp, c.d_model, c.mlp_bias});
  return out;
}

}  // namespace

std::vector<Family> gguf_families() {
  std::vector<Family> rows;
  for (const char* name : {kGgufGpt2, kGgufNeoX, kGgufLlama, kGgufQwen2, kGgufQwen3})
    rows.push_back({.name = name,
                    .read = nullptr,  // gguf_config.cpp
                    .take_ends = gguf_ends,
                    .take_block = gguf_block,
                    .buffers = {"rope_freqs.weight"}});  // in the frequencies already
  return rows;
}

}  // namespace deeptail
