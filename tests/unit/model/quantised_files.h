// A HuggingFace folder of Llama's form as a GGUF file, in floats or in blocks of Q8_0.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "core/json.h"
#include "gguf_models.h"
#include "tensors/half.h"

namespace deeptail::testing {

// kRounded: floats of the values that blocks of Q8_0 would hold.
enum class Quantise { kNone, kRounded, kQ8_0 };

// The nearest half of a positive number in the range of normal ones, ties upwards.
inline std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x1000u - (112u << 23)) >> 13);
}

// [n] -> blocks of 32: half d, 32 signed bytes.
inline std::string q8_0_blocks(const std::vector<float>& values) {
  std::string out;
  for (std::size_t first = 0; first < values.size(); first += 32) {
    float largest = 1e-4f;
    for (std::size_t i = first; i < first + 32; ++i) largest = std::max(largest, std::abs(values[i]));
    const std::uint16_t half = to_half(largest / 127.0f);
    const float d = half_to_float(half);
    out += little_endian(half);
    for (std::size_t i = first; i < first + 32; ++i)
      out += static_cast<char>(std::clamp(std::lround(values[i] / d), -127l, 127l));
  }
  return out;
}

class LlamaConverter {
 public:
  LlamaConverter(const std::string& folder, Quantise how) : tensors_(read_tensors(folder)), how_(how) {
    const InputFile file(folder + "/config.json");
    config_ = parse_json(file.text(), file.path());
    add_keys();
    add("token_embd", "model.embed_tokens");
    add("output_norm", "model.norm");
    for (std::size_t i = 0; i < size("num_hidden_layers"); ++i) add_block(i);
  }
  std::string build() const { return file_.build(); }

 private:
  std::size_t size(const char* key) const { return config_.at(key).get<std::size_t>(); }
  std::size_t d_head() const { return size("hidden_size") / size("num_attention_heads"); }
  void add_keys() {
    const auto u32 = [&](const char* to, const char* from) {
      file_.u32(std::string("llama.") + to, static_cast<std::uint32_t>(size(from)));
    };
    file_.text("general.architecture", "llama");
    u32("block_count", "num_hidden_layers");
    u32("context_length", "max_position_embeddings");
    u32("embedding_length", "hidden_size");
    u32("feed_forward_length", "intermediate_size");
    u32("attention.head_count", "num_attention_heads");
    u32("attention.head_count_kv", "num_key_value_heads");
    file_.f32("llama.attention.layer_norm_rms_epsilon", config_.at("rms_norm_eps").get<float>());
    file_.f32("llama.rope.freq_base", config_.at("rope_theta").get<float>());
  }
  void add(const std::string& to, const std::string& from, bool interleave = false) {
    const Tensor& tensor = tensors_.at(from + ".weight");
    const bool matrix = tensor.shape.size() == 2;
    Linear l{static_cast<std::size_t>(tensor.shape[0]),
             matrix ? static_cast<std::size_t>(tensor.shape[1]) : 1,
             to_float(tensor),
             {}};
    if (interleave) l = l.interleaved(d_head(), d_head());
    const std::vector<std::uint64_t> sizes =
        matrix ? std::vector<std::uint64_t>{l.in, l.out} : std::vector<std::uint64_t>{l.out};
    // Norms, and rows that blocks do not fill, stay floats.
    if (!matrix || l.in % 32 != 0 || how_ == Quantise::kNone)
      file_.floats(to + ".weight", sizes, l.w);
    else if (how_ == Quantise::kQ8_0)
      file_.tensor(to + ".weight", sizes, 8, q8_0_blocks(l.w));
    else
      file_.floats(to + ".weight", sizes, rounded(l.w));
  }
  static std::vector<float> rounded(const std::vector<float>& values) {
    const std::string blocks = q8_0_blocks(values);
    return to_float(
        {"", DType::kQ8_0, {static_cast<std::int64_t>(values.size())}, as_bytes(blocks), nullptr});
  }
  void add_block(std::size_t layer) {
    const std::string to = fmt::format("blk.{}.", layer), from = fmt::format("model.layers.{}.", layer);
    add(to + "attn_norm", from + "input_layernorm");
    add(to + "ffn_norm", from + "post_attention_layernorm");
    add(to + "attn_q", from + "self_attn.q_proj", true);
    add(to + "attn_k", from + "self_attn.k_proj", true);
    add(to + "attn_v", from + "self_attn.v_proj");
    add(to + "attn_output", from + "self_attn.o_proj");
    add(to + "ffn_gate", from + "mlp.gate_proj");
    add(to + "ffn_up", from + "mlp.up_proj");
    add(to + "ffn_down", from + "mlp.down_proj");
  }

  TensorMap tensors_;
  Quantise how_;
  Json config_;
  GgufBuilder file_;
};

inline std::string llama_as_gguf(const std::string& folder, Quantise how) {
  return LlamaConverter(folder, how).build();
}

inline TokenId argmax_of(const std::vector<float>& logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace deeptail::testing
