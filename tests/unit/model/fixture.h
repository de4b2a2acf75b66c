// Random-weight models with logits, residuals and gradients computed by PyTorch in float64
// (tests/reference/make_model_fixtures.py).
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "deeptail/model.h"

namespace deeptail {

struct FixtureSequence {
  std::vector<TokenId> tokens;
  TokenId argmax = 0, target = 0;
  std::vector<TokenId> targets;
  double target_logit = 0, margin = 0;
  std::vector<double> logits, resid_post;
  std::vector<double> grad_target_logit, grad_margin;  // [length * d_model], or empty
};

struct Fixture {
  std::string name;
  Transformer model;
  std::vector<FixtureSequence> sequences;
};

inline std::vector<double> flat(const Json& json) {
  std::vector<double> out;
  if (json.is_array())
    for (const Json& item : json) {
      const auto part = item.is_array() ? flat(item) : std::vector<double>{item.get<double>()};
      out.insert(out.end(), part.begin(), part.end());
    }
  return out;
}

// Of TransformerLens's names, or of a family's.
inline std::string fixture_folder(const std::string& name) {
  const std::string at = DEEPTAIL_TEST_DATA;
  return std::filesystem::exists(at + "/model/" + name) ? at + "/model/" + name : at + "/families/" + name;
}

inline Fixture load_fixture(const std::string& name) {
  const std::string folder = fixture_folder(name);
  Fixture fixture{name, Transformer::load(folder), {}};
  const InputFile file(folder + "/fixture.json");
  const Json json = parse_json(file.text(), file.path());
  for (const Json& item : json.at("sequences")) {
    FixtureSequence s;
    s.tokens = item.at("tokens").get<std::vector<TokenId>>();
    s.argmax = item.at("argmax");
    s.target = item.at("target");
    s.targets = item.at("targets").get<std::vector<TokenId>>();
    s.target_logit = item.at("target_logit");
    s.margin = item.at("margin");
    s.logits = flat(item.at("logits"));
    s.resid_post = flat(item.at("resid_post"));
    if (item.contains("grad_target_logit")) s.grad_target_logit = flat(item.at("grad_target_logit"));
    if (item.contains("grad_margin")) s.grad_margin = flat(item.at("grad_margin"));
    fixture.sequences.push_back(std::move(s));
  }
  return fixture;
}

inline const std::vector<std::string>& fixture_names() {
  static const std::vector<std::string> names = {"rand-1l-64",  "rand-2l-96-no-bias", "rand-4l-64",
                                                 "rand-1l-128", "rand-3l-256",        "rand-1l-512"};
  return names;
}

// tests/reference/make_family_fixtures.py says what each has in it.
inline const std::vector<std::string>& family_fixture_names() {
  static const std::vector<std::string> names = {
      "gpt2-a",  "gpt2-b",    "gpt2-c",    "gpt_neo-a", "gpt_neo-b", "gpt_neox-a", "gpt_neox-b", "llama-a",
      "llama-b", "mistral-a", "mistral-b", "qwen2-a",   "qwen2-b",   "qwen3-a",    "qwen3-b"};
  return names;
}

inline std::vector<std::string> all_fixture_names() {
  std::vector<std::string> names = fixture_names();
  names.insert(names.end(), family_fixture_names().begin(), family_fixture_names().end());
  return names;
}

inline std::string name_of_param(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Deterministic tokens, [n, length].
inline std::vector<TokenId> some_tokens(const ModelConfig& config, std::size_t n, std::size_t length,
                                        unsigned seed) {
  std::vector<TokenId> out(n * length);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (TokenId& t : out) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    t = static_cast<TokenId>((state >> 33) % config.d_vocab);
  }
  return out;
}

inline AlignedVector<float> residuals_of(const Transformer& model, TokenBatch batch, ThreadPool& pool,
                                         const FirstLayerTable* table = nullptr) {
  const std::size_t d = model.config().d_model;
  AlignedVector<float> out(batch.size() * d);
  final_residuals(model, batch, pool, {out.data(), d}, table);
  return out;
}

}  // namespace deeptail
