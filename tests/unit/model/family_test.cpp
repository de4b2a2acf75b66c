// Families against transformers (tests/reference/make_family_fixtures.py), against plain loops in double
// precision, and with the mistakes that readers of these files are known for: each must show.
#include <cmath>
#include <fstream>
#include <functional>

#include "model/families/family.h"
#include "unit/model/fixture.h"
#include "unit/model/reference_forward.h"

namespace deeptail {
namespace {

class FamilyTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, FamilyTest, ::testing::ValuesIn(family_fixture_names()), name_of_param);

double worst_logit(const Transformer& model, const std::vector<FixtureSequence>& sequences) {
  const ModelConfig& c = model.config();
  ThreadPool pool(1);
  double worst = 0.0;
  for (const FixtureSequence& s : sequences) {
    const auto resid = residuals_of(model, {s.tokens, s.tokens.size()}, pool);
    AlignedVector<float> found(c.d_vocab);
    logits(model.head(), 1, {resid.data(), c.d_model}, pool, {found.data(), c.d_vocab});
    for (std::size_t i = 0; i < c.d_vocab; ++i) worst = std::max(worst, std::abs(found[i] - s.logits[i]));
  }
  return worst;
}

double worst_logit(const reference::Forward& forward, const std::vector<FixtureSequence>& sequences) {
  double worst = 0.0;
  for (const FixtureSequence& s : sequences) {
    const auto found = forward.logits(s.tokens);
    for (std::size_t i = 0; i < found.size(); ++i) worst = std::max(worst, std::abs(found[i] - s.logits[i]));
  }
  return worst;
}

TEST_P(FamilyTest, PlainLoopsEqualTransformers) {
  const Fixture fixture = load_fixture(GetParam());
  const ModelWeights weights = fixture.model.raw_weights();
  EXPECT_LE(worst_logit(reference::Forward(fixture.model.config(), weights), fixture.sequences), 2e-5);
}

TEST_P(FamilyTest, WindowsEndTheContext) {
  const Fixture fixture = load_fixture(GetParam());
  std::size_t longest = 0;
  for (const FixtureSequence& s : fixture.sequences) longest = std::max(longest, s.tokens.size());
  EXPECT_EQ(fixture.model.config().n_ctx, longest);
}

// --- mutants ---

// What a model's folder holds, to be changed.
struct Parts {
  Json config;
  TensorMap tensors;
  std::map<std::string, std::vector<float>> values = {};  // of changed tensors
  std::function<void(ModelConfig&)> then = [](ModelConfig&) {};

  std::vector<float>& floats(const std::string& name) {
    if (!values.contains(name)) values[name] = to_float(tensors.at(name));
    return values[name];
  }
};

Parts parts_of(const std::string& name) {
  const std::string folder = fixture_folder(name);
  const InputFile file(folder + "/config.json");
  return {.config = parse_json(file.text(), file.path()), .tensors = read_tensors(folder)};
}

// Whether the changed model is refused, or computes something else.
bool shows(const std::string& name, const std::function<void(Parts&)>& change) {
  Parts parts = parts_of(name);
  change(parts);
  for (auto& [tensor, floats] : parts.values) {
    parts.tensors.at(tensor).dtype = DType::kF32;
    parts.tensors.at(tensor).bytes = std::as_bytes(std::span(floats));
  }
  try {
    ModelConfig config = parse_config(json_text(parts.config), "config.json");
    parts.then(config);
    const Transformer model = Transformer::from_tensors(config, parts.tensors, "mutant");
    return worst_logit(model, load_fixture(name).sequences) > 2e-4;
  } catch (const InputError&) {
    return true;
  }
}

std::function<void(Parts&)> with_key(const char* key, const Json& value) {
  return [key, value](Parts& p) { p.config[key] = value; };
}
std::function<void(Parts&)> with(const std::function<void(ModelConfig&)>& then) {
  return [then](Parts& p) { p.then = then; };
}

// Rows of a weight [rows, columns], or of a bias, in another order.
void permute_rows(Parts& p, const std::string& name, const std::vector<std::size_t>& from) {
  std::vector<float>& x = p.floats(name);
  const std::vector<float> old = x;
  const std::size_t columns = old.size() / from.size();
  for (std::size_t r = 0; r < from.size(); ++r)
    std::copy_n(old.data() + from[r] * columns, columns, x.data() + r * columns);
}

TEST(FamilyMutants, UnchangedPartsPass) {
  for (const std::string& name : family_fixture_names()) EXPECT_FALSE(shows(name, [](Parts&) {})) << name;
}

TEST(FamilyMutants, OfTheConfig) {
  using Scale = Architecture::AttentionScale;
  const auto scaled = [](Scale scale) {
    return with([=](ModelConfig& c) { c.arch.attention_scale = scale; });
  };
  EXPECT_TRUE(shows("gpt_neo-a", scaled(Scale::kByHead)));  // 1/sqrt(d) where there is none
  EXPECT_TRUE(shows("gpt_neo-b", scaled(Scale::kByHead)));
  for (const char* name : {"gpt2-a", "gpt_neox-a", "llama-a", "mistral-a", "qwen2-a", "qwen3-a"})
    EXPECT_TRUE(shows(name, scaled(Scale::kOne))) << name;
  EXPECT_TRUE(shows("gpt2-b", with_key("scale_attn_by_inverse_layer_idx", false)));
  EXPECT_TRUE(shows("gpt2-a", with_key("scale_attn_by_inverse_layer_idx", true)));
  EXPECT_TRUE(shows("gpt2-a", with_key("scale_attn_weights", false)));
  EXPECT_TRUE(shows("llama-a", with_key("rms_norm_eps", 1e-6)));
  EXPECT_TRUE(shows("mistral-a", with_key("rms_norm_eps", 1e-5)));
  EXPECT_TRUE(shows("qwen2-b", with_key("rms_norm_eps", 1e-5)));
  EXPECT_TRUE(shows("qwen3-b", with_key("rms_norm_eps", 1e-5)));
  EXPECT_TRUE(shows("gpt_neox-a", with_key("layer_norm_eps", 1e-6)));
  EXPECT_TRUE(shows("gpt2-b", with_key("layer_norm_epsilon", 1e-5)));
  EXPECT_TRUE(shows("gpt2-a", with_key("activation_function", "gelu")));      // erf for tanh
  EXPECT_TRUE(shows("gpt2-b", with_key("activation_function", "gelu_new")));  // tanh for erf
  EXPECT_TRUE(shows("gpt_neo-a", with_key("activation_function", "gelu")));
  EXPECT_TRUE(shows("gpt_neox-a", with_key("hidden_act", "gelu_new")));
  EXPECT_TRUE(shows("gpt_neox-b", with_key("hidden_act", "gelu")));
  EXPECT_TRUE(shows("gpt_neox-a", with_key("use_parallel_residual", false)));
  EXPECT_TRUE(shows("gpt_neox-b", with_key("use_parallel_residual", true)));
  EXPECT_TRUE(shows("llama-b", with_key("rope_theta", 10000.0)));
  EXPECT_TRUE(shows("qwen3-b", with_key("rope_theta", 10000.0)));
  EXPECT_TRUE(shows("gpt_neox-b", with_key("rotary_emb_base", 10000.0)));
  EXPECT_TRUE(shows("gpt_neox-b", with_key("rotary_pct", 0.25)));
  EXPECT_TRUE(shows("gpt_neox-b", with_key("rope_scaling", nullptr)));
  EXPECT_TRUE(shows("llama-a", [](Parts& p) { p.config["rope_parameters"]["rope_type"] = "default"; }));
  EXPECT_TRUE(shows("llama-a", [](Parts& p) { p.config["rope_parameters"]["rope_type"] = "linear"; }));
  EXPECT_TRUE(shows("qwen3-a", with([](ModelConfig& c) { c.arch.qk_norm = false; })));
}

TEST(FamilyMutants, OfTheHead) {
  for (const char* name : {"llama-a", "mistral-a", "qwen2-b", "qwen3-b", "gpt2-b", "gpt_neox-a"})
    EXPECT_TRUE(shows(name, with([](ModelConfig& c) { c.arch.tied_head = true; }))) << name;
  for (const char* name : {"llama-b", "qwen2-a", "qwen3-a", "gpt2-a", "gpt_neo-a"}) {
    EXPECT_TRUE(shows(name, with_key("tie_word_embeddings", false))) << name;  // there is no other head
    EXPECT_TRUE(shows(name, [](Parts& p) {  // another head, though it is tied
      const std::string embeddings = p.tensors.contains("transformer.wte.weight")
                                         ? "transformer.wte.weight"
                                         : "model.embed_tokens.weight";
      p.tensors["lm_head.weight"] = p.tensors.at(embeddings);
      p.floats("lm_head.weight")[3] += 1.0f;
    })) << name;
  }
}

TEST(FamilyMutants, OfTheLayouts) {
  // Thirds of all heads for thirds of each head, and the other way round.
  const auto thirds_first = [](std::size_t heads, std::size_t d) {
    std::vector<std::size_t> from;
    for (std::size_t which = 0; which < 3; ++which)
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t i = 0; i < d; ++i) from.push_back((3 * h + which) * d + i);
    return from;
  };
  EXPECT_TRUE(shows("gpt_neox-a", [&](Parts& p) {
    for (const char* leaf : {"weight", "bias"})
      permute_rows(p, fmt::format("gpt_neox.layers.0.attention.query_key_value.{}", leaf),
                   thirds_first(2, 16));
  }));
  // Keys for queries.
  EXPECT_TRUE(shows("gpt2-a", [](Parts& p) {
    std::vector<float>& w = p.floats("transformer.h.0.attn.c_attn.weight");  // [24, 72]
    for (std::size_t i = 0; i < 24; ++i) std::swap_ranges(&w[i * 72], &w[i * 72 + 24], &w[i * 72 + 24]);
  }));
  // [in, out] for [out, in].
  EXPECT_TRUE(shows("gpt_neo-a", [](Parts& p) {
    std::vector<float>& w = p.floats("transformer.h.0.attn.attention.out_proj.weight");
    for (std::size_t i = 0; i < 24; ++i)
      for (std::size_t j = 0; j < i; ++j) std::swap(w[i * 24 + j], w[j * 24 + i]);
  }));
  // Rows in the order in which neighbouring pairs turn, as other files have them.
  EXPECT_TRUE(shows("llama-a", [](Parts& p) {
    for (const auto& [name, heads] : std::map<std::string, std::size_t>{{"q", 4}, {"k", 2}}) {
      std::vector<std::size_t> from;
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t i = 0; i < 10; ++i) from.push_back(h * 10 + i / 2 + i % 2 * 5);
      for (std::size_t layer = 0; layer < 2; ++layer)
        permute_rows(p, fmt::format("model.layers.{}.self_attn.{}_proj.weight", layer, name), from);
    }
  }));
}

TEST(FamilyMutants, OfTheBiases) {
  const std::pair<const char*, const char*> biases[] = {
      {"gpt2-a", "transformer.h.1.attn.c_attn.bias"},
      {"gpt2-a", "transformer.h.0.mlp.c_proj.bias"},
      {"gpt_neo-a", "transformer.h.0.mlp.c_fc.bias"},
      {"gpt_neo-a", "transformer.h.0.attn.attention.out_proj.bias"},
      {"gpt_neox-a", "gpt_neox.layers.0.attention.query_key_value.bias"},
      {"gpt_neox-a", "gpt_neox.layers.1.attention.dense.bias"},
      {"llama-b", "model.layers.0.self_attn.q_proj.bias"},
      {"llama-b", "model.layers.1.self_attn.v_proj.bias"},
      {"llama-b", "model.layers.0.self_attn.o_proj.bias"},
      {"llama-b", "model.layers.0.mlp.gate_proj.bias"},
      {"qwen2-a", "model.layers.0.self_attn.k_proj.bias"},
      {"qwen3-b", "model.layers.0.self_attn.k_proj.bias"}};
  for (const auto& [name, tensor] : biases) {
    const std::string bias = tensor;
    EXPECT_TRUE(shows(name, [&](Parts& p) { std::ranges::fill(p.floats(bias), 0.0f); })) << bias;
    EXPECT_TRUE(shows(name, [&](Parts& p) { p.tensors.erase(bias); })) << bias;
  }
  EXPECT_TRUE(shows("llama-b", with_key("attention_bias", false)));
  EXPECT_TRUE(shows("llama-b", with_key("mlp_bias", false)));
}

TEST(FamilyMutants, OfTheForwardPass) {
  const auto shows_in_loops = [](const std::string& name, reference::Mistakes mistakes) {
    const Fixture fixture = load_fixture(name);
    const ModelWeights weights = fixture.model.raw_weights();
    return worst_logit(reference::Forward(fixture.model.config(), weights, mistakes), fixture.sequences) >
           2e-4;
  };
  for (const char* name :
       {"gpt_neox-a", "gpt_neox-b", "llama-a", "llama-b", "mistral-a", "qwen2-a", "qwen3-a"})
    EXPECT_TRUE(shows_in_loops(name, {.pairs_for_halves = true})) << name;
  for (const char* name : {"qwen3-a", "qwen3-b"})
    EXPECT_TRUE(shows_in_loops(name, {.norm_after_rotation = true})) << name;
  for (const char* name : {"llama-a", "mistral-a", "qwen2-a", "qwen3-a"})
    EXPECT_TRUE(shows_in_loops(name, {.other_grouping = true})) << name;
  EXPECT_TRUE(shows_in_loops("gpt_neox-a", {.swapped_norms = true}));
}

}  // namespace
}  // namespace deeptail
