#include <gtest/gtest.h>

#include "gguf_models.h"
#include "model/families/family.h"
#include "model/families/gguf_config.h"

namespace deeptail {
namespace {

using namespace testing;
using Arch = Architecture;

Gguf parsed_model(const std::string& file) { return parse_gguf(as_bytes(file), "some/m.gguf"); }
ModelConfig config_of_model(const GgufModelWriter& writer) {
  const std::string file = writer.file.build();
  return gguf_config(parsed_model(file));
}

void expect_same(const Matrix& a, const Matrix& b, const char* what) {
  EXPECT_EQ(a.in, b.in) << what;
  EXPECT_EQ(a.out, b.out) << what;
  EXPECT_TRUE(a.w == b.w) << what;
  EXPECT_TRUE(a.b == b.b) << what;
}
void expect_same(const NormWeights& a, const NormWeights& b, const char* what) {
  EXPECT_TRUE(a.w == b.w && a.b == b.b) << what;
}

void expect_read_as_expected(const GgufModelWriter& writer) {
  const std::string file = writer.file.build();
  const Gguf gguf = parsed_model(file);
  const std::string where = "m.gguf";
  TensorTaker taker(gguf.tensors, where);
  const ModelWeights found = take_weights(gguf_config(gguf), taker);
  const ModelWeights& expected = writer.expected;
  EXPECT_TRUE(found.w_e == expected.w_e);
  EXPECT_TRUE(found.w_pos == expected.w_pos);
  expect_same(found.ln_final, expected.ln_final, "ln_final");
  expect_same(found.w_u, expected.w_u, "w_u");
  ASSERT_EQ(found.blocks.size(), expected.blocks.size());
  for (std::size_t i = 0; i < found.blocks.size(); ++i) {
    const BlockWeights &a = found.blocks[i], &b = expected.blocks[i];
    expect_same(a.ln1, b.ln1, "ln1");
    expect_same(a.ln2, b.ln2, "ln2");
    expect_same(a.q_norm, b.q_norm, "q_norm");
    expect_same(a.k_norm, b.k_norm, "k_norm");
    expect_same(a.w_q, b.w_q, "w_q");
    expect_same(a.w_k, b.w_k, "w_k");
    expect_same(a.w_v, b.w_v, "w_v");
    expect_same(a.w_o, b.w_o, "w_o");
    expect_same(a.w_gate, b.w_gate, "w_gate");
    expect_same(a.w_in, b.w_in, "w_in");
    expect_same(a.w_out, b.w_out, "w_out");
  }
}

TEST(GgufModel, WeightsAreThoseThatWereConverted) {
  const std::vector<GgufModel> models = {
      {.architecture = "llama"},
      {.architecture = "llama", .n_kv_heads = 4, .tied = false, .biased = true},
      {.architecture = "llama", .rotary = 4},
      {.architecture = "llama", .d_head = 6, .rotary = 6},  // heads that do not fill the model's width
      {.architecture = "qwen2"},
      {.architecture = "qwen3", .d_head = 16, .tied = false, .rotary = 16},
      {.architecture = "gpt2", .n_kv_heads = 4},
      {.architecture = "gptneox", .n_kv_heads = 4, .tied = false, .rotary = 2},
  };
  for (const GgufModel& model : models) {
    SCOPED_TRACE(model.architecture);
    expect_read_as_expected(GgufModelWriter(model));
  }
}

TEST(GgufModel, KeysBecomeTheConfig) {
  const ModelConfig llama = config_of_model(GgufModelWriter({.architecture = "llama"}));
  EXPECT_EQ(llama.model_name, "m");
  EXPECT_EQ(llama.family, "gguf-llama");
  EXPECT_EQ(llama.n_layers, 2u);
  EXPECT_EQ(llama.d_model, 32u);
  EXPECT_EQ(llama.n_heads, 4u);
  EXPECT_EQ(llama.n_kv_heads(), 2u);
  EXPECT_EQ(llama.d_head, 8u);
  EXPECT_EQ(llama.d_mlp, 64u);
  EXPECT_EQ(llama.n_ctx, 16u);
  EXPECT_EQ(llama.d_vocab, 7u);
  EXPECT_EQ(llama.eps, 1e-6f);
  EXPECT_EQ(llama.arch, (Arch{.norm = Arch::Norm::kRms,
                              .positions = Arch::Positions::kRotary,
                              .mlp = Arch::Mlp::kSwiGlu,
                              .kv_groups = 2,
                              .tied_head = true,
                              .frequencies = llama.arch.frequencies}));
  ASSERT_EQ(llama.arch.rotary_dims(), 8u);
  EXPECT_EQ(llama.arch.frequencies[0], 1.0);
  EXPECT_NEAR(llama.arch.frequencies[1], 0.1, 1e-15);

  const ModelConfig gpt2 = config_of_model(GgufModelWriter({.architecture = "gpt2", .n_kv_heads = 4}));
  EXPECT_EQ(gpt2.arch, (Arch{.mlp = Arch::Mlp::kGeluTanh, .tied_head = true}));
  const ModelConfig neox = config_of_model(
      GgufModelWriter({.architecture = "gptneox", .n_kv_heads = 4, .tied = false, .rotary = 2}));
  EXPECT_EQ(neox.arch, (Arch{.positions = Arch::Positions::kRotary,
                             .residual = Arch::Residual::kParallel,
                             .mlp = Arch::Mlp::kGelu,
                             .frequencies = {1.0}}));
  const std::string shard = GgufModelWriter({.architecture = "llama"}).file.build();
  EXPECT_EQ(gguf_config(parse_gguf(as_bytes(shard), "some/m-00001-of-00003.gguf")).model_name, "m");
  EXPECT_FALSE(config_of_model(GgufModelWriter({.architecture = "qwen2"})).arch.qk_norm);
  EXPECT_TRUE(config_of_model(GgufModelWriter({.architecture = "qwen3"})).arch.qk_norm);
}

TEST(GgufModel, ScalingsOfPositions) {
  GgufModelWriter base({.architecture = "llama", .rope_freqs = {1, 1, 4, 8}});
  base.file.f32("llama.rope.freq_base", 500000.0f);
  const ModelConfig divided = config_of_model(base);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(divided.arch.frequencies[i] * static_cast<double>(base.m.rope_freqs[i]),
                std::pow(500000.0, -static_cast<double>(i) / 4), 1e-15);

  GgufModelWriter linear({.architecture = "llama"});
  linear.file.text("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(config_of_model(linear).arch.frequencies[0], 0.25);

  GgufModelWriter window({.architecture = "llama"});
  window.file.u32("llama.attention.sliding_window", 5);
  EXPECT_EQ(config_of_model(window).n_ctx, 5u);

  GgufModelWriter sequential(
      {.architecture = "gptneox", .n_kv_heads = 4, .tied = false, .parallel = false, .rotary = 2});
  EXPECT_EQ(config_of_model(sequential).arch.residual, Arch::Residual::kSequential);
}

void refused_with(GgufModel model, const std::function<void(GgufBuilder&)>& change,
                  const std::vector<std::string>& message) {
  GgufModelWriter writer(std::move(model));
  change(writer.file);
  const std::string file = writer.file.build();
  const Gguf gguf = parsed_model(file);
  const std::string where = "some/m.gguf";
  expect_refused(
      [&] {
        TensorTaker taker(gguf.tensors, where);
        take_weights(gguf_config(gguf), taker);
      },
      message);
}

TEST(GgufModel, RefusesWhatItDoesNotCompute) {
  const GgufModel llama = {.architecture = "llama"};
  const auto u32 = [](const char* key, std::uint32_t value) {
    return [=](GgufBuilder& b) { b.u32(key, value); };
  };
  const auto f32 = [](const char* key, float value) { return [=](GgufBuilder& b) { b.f32(key, value); }; };
  const auto text = [](const char* key, const char* value) {
    return [=](GgufBuilder& b) { b.text(key, value); };
  };
  refused_with(llama, u32("llama.expert_count", 8), {"some/m.gguf", "'llama.expert_count'", "expected 0"});
  refused_with(llama, f32("llama.logit_scale", 0.5f), {"'llama.logit_scale'", "expected 1"});
  refused_with(llama, f32("llama.attention.scale", 1.0f), {"'llama.attention.scale'", "1 / sqrt(8)"});
  refused_with(llama, f32("llama.embedding_scale", 12.0f), {"key 'llama.embedding_scale' is not supported"});
  refused_with(llama, text("llama.rope.scaling.type", "yarn"), {"llama.rope.scaling.type", "found \"yarn\""});
  refused_with(llama, f32("llama.rope.freq_base", 0.0f), {"llama.rope.freq_base", "above 0"});
  refused_with(llama, u32("llama.rope.dimension_count", 5), {"llama.rope.dimension_count", "an even number"});
  refused_with(llama, u32("llama.rope.dimension_count", 10), {"a whole number from 1 to 8"});
  refused_with(llama, u32("llama.vocab_size", 8), {"'llama.vocab_size'", "7, the rows of token_embd.weight"});
  refused_with(llama, u32("llama.attention.value_length", 4), {"llama.attention.value_length", "keys, 8"});
  refused_with(llama, [](GgufBuilder& b) { b.boolean("llama.attention.causal", false); },
               {"llama.attention.causal"});
  refused_with(llama, [](GgufBuilder& b) { b.floats("blk.0.ffn_gate_inp.weight", {1}, {1}); },
               {"blk.0.ffn_gate_inp.weight is not part of this architecture"});
  GgufModel odd = llama;
  odd.rope_freqs = {1, 2, 3};
  refused_with(odd, [](GgufBuilder&) {}, {"rope_freqs.weight", "expected 4 numbers above 0"});
  odd.rope_freqs = {1, 2, 0, 3};
  refused_with(odd, [](GgufBuilder&) {}, {"rope_freqs.weight", "expected 4 numbers above 0"});
  refused_with({.n_heads = 4, .n_kv_heads = 3}, [](GgufBuilder&) {}, {"head_count_kv", "a divisor of"});
  refused_with({.architecture = "mamba"}, [](GgufBuilder&) {},
               {"architecture 'mamba' has no engine here, only gpt2, gptneox, llama, qwen2, qwen3"});
  refused_with({.architecture = "gptneox", .n_kv_heads = 4, .tied = true, .rotary = 2}, [](GgufBuilder&) {},
               {"tensor output.weight is missing"});
  refused_with({.architecture = "qwen3", .biased = true}, [](GgufBuilder&) {},
               {"bias is not part of this architecture"});
}

TEST(GgufModel, SaysWhichKeyIsMissing) {
  const std::string file = GgufBuilder().text("general.architecture", "llama").build();
  expect_refused([&] { gguf_config(parsed_model(file)); }, {"key 'llama.block_count' is missing"});
  const std::string none = GgufBuilder().build();
  expect_refused([&] { gguf_config(parsed_model(none)); }, {"key 'general.architecture' is missing"});
}

}  // namespace
}  // namespace deeptail
