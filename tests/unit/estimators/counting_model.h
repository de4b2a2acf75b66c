// A transformer with constructed weights that adds up: it says kTarget iff the values of its tokens sum to at
// least a threshold. So every probability is a tail of a sum of independent whole numbers, known exactly.
//
// u, f, g are orthogonal directions with mean 0. A token of value v is embedded at cos = v / 3 along u (the
// rest along g), so all embeddings have one norm and ln1 only scales; attention is uniform and carries the
// mean of the cosines to the last position, whose own embedding is f; the unembedding compares u with f.
#pragma once

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "deeptail/inputs.h"
#include "deeptail/model.h"

namespace deeptail {

class CountingModel {
 public:
  static constexpr std::size_t kValues = 4;  // token v has value v
  static constexpr TokenId kEnd = 4, kTarget = 5;
  static constexpr std::size_t kVocab = 6;

  // free tokens, then kEnd.
  CountingModel(std::size_t n_free, std::array<double, kValues> probabilities, int threshold)
      : n_free_(n_free), p_(probabilities), threshold_(threshold), model_(built()) {
    dist_.name = "counting";
    dist_.d_vocab = kVocab;
    dist_.tables = {TokenTable("value", {0, 1, 2, 3}, {p_.begin(), p_.end()}, "counting"),
                    TokenTable("end", {kEnd}, {1.0}, "counting")};
    dist_.positions.assign(n_free, 0);
    dist_.positions.push_back(1);
  }

  const Transformer& model() const { return model_; }
  const Distribution& dist() const { return dist_; }
  Target target() const { return Target({kTarget}, model_.head()); }

  // The exact probability of the event.
  double truth() const {
    std::vector<double> sum = {1.0};
    for (std::size_t i = 0; i < n_free_; ++i) {
      std::vector<double> next(sum.size() + kValues - 1, 0.0);
      for (std::size_t s = 0; s < sum.size(); ++s)
        for (std::size_t v = 0; v < kValues; ++v) next[s + v] += sum[s] * p_[v];
      sum = std::move(next);
    }
    double tail = 0.0;
    for (std::size_t s = sum.size(); s-- > static_cast<std::size_t>(threshold_);) tail += sum[s];
    return tail;
  }

 private:
  Transformer built() {
    build_weights();
    return Transformer::from_tensors(config(), tensors_, "counting model");
  }

  static constexpr std::array<float, 4> kU = {1, 1, -1, -1}, kF = {1, -1, 1, -1}, kG = {1, -1, -1, 1};

  ModelConfig config() const {
    return {.model_name = "counting",
            .n_layers = 1,
            .d_model = 4,
            .n_heads = 1,
            .d_head = 1,
            .d_mlp = 1,
            .n_ctx = n_free_ + 1,
            .d_vocab = kVocab,
            .eps = 1e-5f,
            .tokenizer_file = ""};
  }

  void put(const std::string& name, std::vector<std::int64_t> shape, std::vector<float> values) {
    std::vector<float>& kept = storage_[name] = std::move(values);
    tensors_[name] = {.name = name,
                      .dtype = DType::kF32,
                      .shape = std::move(shape),
                      .bytes = std::as_bytes(std::span(kept)),
                      .file = {}};
  }

  void build_weights() {
    const auto length = static_cast<std::int64_t>(n_free_) + 1;
    std::vector<float> embed;
    for (std::size_t v = 0; v < kValues; ++v) {
      const double cosine = static_cast<double>(v) / 3.0, sine = std::sqrt(1.0 - cosine * cosine);
      for (std::size_t i = 0; i < 4; ++i) embed.push_back(static_cast<float>(cosine * kU[i] + sine * kG[i]));
    }
    for (int repeat = 0; repeat < 2; ++repeat) embed.insert(embed.end(), kF.begin(), kF.end());
    put("embed.W_E", {kVocab, 4}, embed);
    put("pos_embed.W_pos", {length, 4}, std::vector<float>(static_cast<std::size_t>(length) * 4, 0.0f));
    const std::string block = "blocks.0.";
    for (const char* ln : {"blocks.0.ln1", "blocks.0.ln2", "ln_final"}) {
      put(std::string(ln) + ".w", {4}, {1, 1, 1, 1});
      put(std::string(ln) + ".b", {4}, {0, 0, 0, 0});
    }
    for (const char* name : {"Q", "K"}) put(block + "attn.W_" + name, {1, 4, 1}, {0, 0, 0, 0});
    for (const char* name : {"Q", "K", "V"}) put(block + "attn.b_" + name, {1, 1}, {0});
    const auto along = [](const std::array<float, 4>& direction, double scale) {
      std::vector<float> out;
      for (const float x : direction) out.push_back(static_cast<float>(x * scale));
      return out;
    };
    put(block + "attn.W_V", {1, 4, 1}, along(kU, 0.25));  // the cosine
    put(block + "attn.W_O", {1, 1, 4}, along(kU, 1.0));
    put(block + "attn.b_O", {4}, {0, 0, 0, 0});
    put(block + "mlp.W_in", {4, 1}, {0, 0, 0, 0});
    put(block + "mlp.b_in", {1}, {0});
    put(block + "mlp.W_out", {1, 4}, {0, 0, 0, 0});
    put(block + "mlp.b_out", {4}, {0, 0, 0, 0});
    // target logit: (mean cosine - (threshold - 1/2) / (3 length)) * 100, over the norm that ln_final takes
    // out.
    const double middle = (threshold_ - 0.5) / (3.0 * static_cast<double>(length));
    std::vector<float> unembed(4 * kVocab, 0.0f);
    for (std::size_t i = 0; i < 4; ++i)
      unembed[i * kVocab + kTarget] = static_cast<float>(25.0 * (kU[i] - middle * kF[i]));
    put("unembed.W_U", {4, kVocab}, unembed);
  }

  std::size_t n_free_;
  std::array<double, kValues> p_;
  int threshold_;
  std::map<std::string, std::vector<float>> storage_;
  TensorMap tensors_;
  Transformer model_;
  Distribution dist_;
};

}  // namespace deeptail
