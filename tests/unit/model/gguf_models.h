// Small random models as GGUF files, written the way converters write them, with what they should be read as.
#pragma once

#include <map>
#include <random>

#include "model/weights.h"
#include "tensors/build_gguf.h"

namespace deeptail::testing {

struct GgufModel {
  std::string architecture = "llama";
  std::size_t n_layers = 2, d_model = 32, n_heads = 4, n_kv_heads = 2, d_head = 8, d_mlp = 64, n_ctx = 16,
              d_vocab = 7;
  bool tied = true, biased = false, parallel = true;
  std::size_t rotary = 8;  // of d_head
  std::vector<float> rope_freqs = {};

  bool is_gpt() const { return architecture.starts_with("gpt"); }
};

// [out, in] as HuggingFace has it.
struct Linear {
  std::size_t out, in;
  std::vector<float> w, b;

  Matrix matrix() const {
    Matrix m{.in = in, .out = out, .w = std::vector<float>(w.size()), .b = b};
    for (std::size_t o = 0; o < out; ++o)
      for (std::size_t i = 0; i < in; ++i) m.w[i * out + o] = w[o * in + i];
    return m;
  }
  // Rows of every head interleaved: of its first half, of its second, ..., as converters write Llama's.
  Linear interleaved(std::size_t d_head, std::size_t rotary) const {
    Linear to = *this;
    for (std::size_t head = 0; head < out / d_head; ++head)
      for (std::size_t s = 0; s < 2; ++s)
        for (std::size_t j = 0; j < rotary / 2; ++j) {
          const std::size_t from = head * d_head + s * rotary / 2 + j, row = head * d_head + 2 * j + s;
          std::copy_n(w.data() + from * in, in, to.w.data() + row * in);
          if (!b.empty()) to.b[row] = b[from];
        }
    return to;
  }
};

class GgufModelWriter {
 public:
  explicit GgufModelWriter(GgufModel model) : m(std::move(model)) {
    add_keys();
    add_ends();
    for (std::size_t layer = 0; layer < m.n_layers; ++layer) add_block("blk." + std::to_string(layer) + ".");
  }
  GgufModel m;
  GgufBuilder file;
  ModelWeights expected;

 private:
  std::vector<float> random(std::size_t n) {
    std::vector<float> values(n);
    for (float& v : values) v = normal_(generator_);
    return values;
  }
  Linear linear(std::size_t out, std::size_t in, bool bias) {
    return {out, in, random(out * in), bias ? random(out) : std::vector<float>{}};
  }
  void add(const std::string& name, const Linear& l) {
    file.floats(name + ".weight", {l.in, l.out}, l.w);
    if (!l.b.empty()) file.floats(name + ".bias", {l.out}, l.b);
  }
  NormWeights add_norm(const std::string& name, std::size_t n, bool bias) {
    NormWeights norm{random(n), bias ? random(n) : std::vector<float>{}};
    file.floats(name + ".weight", {n}, norm.w);
    if (bias) file.floats(name + ".bias", {n}, norm.b);
    return norm;
  }
  void add_keys() {
    const auto at = [&](const char* key) { return m.architecture + "." + key; };
    const auto u32 = [&](const char* key, std::size_t value) {
      file.u32(at(key), static_cast<std::uint32_t>(value));
    };
    file.text("general.architecture", m.architecture).text("general.name", "a note");
    u32("block_count", m.n_layers);
    u32("context_length", m.n_ctx);
    u32("embedding_length", m.d_model);
    u32("feed_forward_length", m.d_mlp);
    u32("attention.head_count", m.n_heads);
    if (m.n_kv_heads != m.n_heads) u32("attention.head_count_kv", m.n_kv_heads);
    if (m.d_head * m.n_heads != m.d_model) u32("attention.key_length", m.d_head);
    if (m.architecture != "gpt2" && m.rotary != m.d_head) u32("rope.dimension_count", m.rotary);
    file.f32(at(m.is_gpt() ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"), 1e-6f);
    if (m.architecture == "gptneox") file.boolean(at("use_parallel_residual"), m.parallel);
  }
  void add_ends() {
    const Linear embedding = linear(m.d_vocab, m.d_model, false);
    add("token_embd", embedding);
    expected.w_e = embedding.w;
    if (m.architecture == "gpt2") {
      const Linear positions = linear(m.n_ctx, m.d_model, false);
      add("position_embd", positions);
      expected.w_pos = positions.w;
    }
    expected.ln_final = add_norm("output_norm", m.d_model, m.is_gpt());
    expected.w_u = {.in = m.d_model, .out = m.d_vocab};
    if (!m.tied) {
      const Linear head = linear(m.d_vocab, m.d_model, false);
      add("output", head);
      expected.w_u = head.matrix();
    }
    if (!m.rope_freqs.empty()) file.floats("rope_freqs.weight", {m.rope_freqs.size()}, m.rope_freqs);
  }
  void add_block(const std::string& at) {
    const bool gpt = m.is_gpt(), biased = m.biased || gpt, qwen2 = m.architecture == "qwen2";
    const std::size_t d_attn = m.n_heads * m.d_head, d_kv = m.n_kv_heads * m.d_head;
    BlockWeights block;
    block.ln1 = add_norm(at + "attn_norm", m.d_model, gpt);
    block.ln2 = add_norm(at + "ffn_norm", m.d_model, gpt);
    if (m.architecture == "qwen3") {
      block.q_norm = add_norm(at + "attn_q_norm", m.d_head, false);
      block.k_norm = add_norm(at + "attn_k_norm", m.d_head, false);
    }
    const Linear q = linear(d_attn, m.d_model, biased || qwen2), k = linear(d_kv, m.d_model, biased || qwen2),
                 v = linear(d_kv, m.d_model, biased || qwen2);
    add_qkv(at, q, k, v);
    block.w_q = q.matrix(), block.w_k = k.matrix(), block.w_v = v.matrix();
    const auto take = [&](const char* name, std::size_t out, std::size_t in) {
      const Linear l = linear(out, in, biased);
      add(at + name, l);
      return l.matrix();
    };
    block.w_o = take("attn_output", m.d_model, d_attn);
    if (!gpt) block.w_gate = take("ffn_gate", m.d_mlp, m.d_model);
    block.w_in = take("ffn_up", m.d_mlp, m.d_model);
    block.w_out = take("ffn_down", m.d_model, m.d_mlp);
    expected.blocks.push_back(block);
  }
  void add_qkv(const std::string& at, const Linear& q, const Linear& k, const Linear& v) {
    if (m.is_gpt()) {
      Linear all = q;
      for (const Linear* part : {&k, &v}) {
        all.out += part->out;
        all.w.insert(all.w.end(), part->w.begin(), part->w.end());
        all.b.insert(all.b.end(), part->b.begin(), part->b.end());
      }
      return add(at + "attn_qkv", all);
    }
    const bool pairs = m.architecture == "llama";
    add(at + "attn_q", pairs ? q.interleaved(m.d_head, m.rotary) : q);
    add(at + "attn_k", pairs ? k.interleaved(m.d_head, m.rotary) : k);
    add(at + "attn_v", v);
  }

  std::mt19937 generator_{20};
  std::normal_distribution<float> normal_;
};

}  // namespace deeptail::testing
