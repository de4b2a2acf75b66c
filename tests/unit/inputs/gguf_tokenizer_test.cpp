#include "inputs/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include "core/sha256.h"
#include "tensors/build_gguf.h"
#include "text/small_tokenizer.h"

namespace deeptail {
namespace {

using namespace testing;
using Ids = std::vector<TokenId>;

GgufMetadata keys_of(const GgufBuilder& builder) {
  const std::string file = builder.build();
  return parse_gguf(as_bytes(file), "m.gguf").metadata;
}

// The 256 bytes, "ab" and a control token.
GgufBuilder byte_level_keys(const char* pre) {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types(257, 1);
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(alphabet_character(static_cast<unsigned char>(byte)));
  tokens.push_back("ab");
  tokens.push_back("<|end|>");
  types.push_back(3);
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", tokens);
  builder.array("tokenizer.ggml.token_type", GgufType::kI32, types.size(), bytes_of(types));
  builder.texts("tokenizer.ggml.merges", {"a b"}).u32("tokenizer.ggml.bos_token_id", 257);
  if (pre != nullptr) builder.text("tokenizer.ggml.pre", pre);
  return builder;
}

// <unk> <s>, pieces with scores, bytes for a and the space.
GgufBuilder sentencepiece_keys() {
  const std::vector<std::string> tokens = {"<unk>", "<s>", "<0x61>", "\u2581", "b", "c", "bc", "\u2581b"};
  const std::vector<std::int32_t> types = {2, 3, 6, 1, 1, 1, 1, 1};
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "llama").texts("tokenizer.ggml.tokens", tokens);
  builder.array("tokenizer.ggml.token_type", GgufType::kI32, types.size(), bytes_of(types));
  builder.array("tokenizer.ggml.scores", GgufType::kF32, 8, bytes_of<float>({0, 0, 0, -3, -3, -3, -1, -2}));
  return builder;
}

TEST(GgufTokenizer, ByteLevel) {
  const auto named = gguf_tokenizer(keys_of(byte_level_keys("gpt-2")));
  ASSERT_TRUE(named);
  EXPECT_EQ(named->tokenizer.encode("xab<|end|>"), (Ids{'x', 256, 257}));
  EXPECT_TRUE(named->tokenizer.bos().empty());
  EXPECT_EQ(named->sha256.size(), 64u);
  // Llama 3 puts its token before a text unless the file says no.
  EXPECT_EQ(gguf_tokenizer(keys_of(byte_level_keys("llama-bpe")))->tokenizer.bos(), Ids{257});
  GgufBuilder no = byte_level_keys("llama-bpe"), yes = byte_level_keys("gpt-2");
  no.boolean("tokenizer.ggml.add_bos_token", false);
  yes.boolean("tokenizer.ggml.add_bos_token", true);
  EXPECT_TRUE(gguf_tokenizer(keys_of(no))->tokenizer.bos().empty());
  EXPECT_EQ(gguf_tokenizer(keys_of(yes))->tokenizer.bos(), Ids{257});
}

TEST(GgufTokenizer, SentencePiece) {
  const auto named = gguf_tokenizer(keys_of(sentencepiece_keys()));
  ASSERT_TRUE(named);
  EXPECT_EQ(named->tokenizer.encode("bc"), (Ids{3, 6}));  // "bc" has a higher score than " b"
  EXPECT_EQ(named->tokenizer.encode("ba"), (Ids{7, 2}));
  EXPECT_EQ(named->tokenizer.bos(), Ids{1});
  GgufBuilder bare = sentencepiece_keys();
  bare.boolean("tokenizer.ggml.add_space_prefix", false).boolean("tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ(gguf_tokenizer(keys_of(bare))->tokenizer.encode("bc"), (Ids{6}));
  EXPECT_TRUE(gguf_tokenizer(keys_of(bare))->tokenizer.bos().empty());
}

TEST(GgufTokenizer, IsCalledByWhatItHolds) {
  const auto sha = [](const GgufBuilder& builder) { return gguf_tokenizer(keys_of(builder))->sha256; };
  GgufBuilder named = byte_level_keys("gpt-2");
  named.text("general.name", "something else");
  EXPECT_EQ(sha(named), sha(byte_level_keys("gpt-2")));
  EXPECT_NE(sha(byte_level_keys("smollm")), sha(byte_level_keys("gpt-2")));
  GgufBuilder bare = sentencepiece_keys();
  bare.boolean("tokenizer.ggml.add_space_prefix", false);
  EXPECT_NE(sha(bare), sha(sentencepiece_keys()));
}

TEST(GgufTokenizer, AWholeTokenizerJsonComesFirst) {
  const std::string json = json_text(small_tokenizer({{"a", "b"}}));
  GgufBuilder builder = sentencepiece_keys();
  builder.text("tokenizer.huggingface.json", json);
  const auto named = gguf_tokenizer(keys_of(builder));
  ASSERT_TRUE(named);
  EXPECT_EQ(named->tokenizer.encode("xab"), (Ids{'x', 256}));
  EXPECT_EQ(named->sha256, sha256_hex(json));
}

TEST(GgufTokenizer, MayBeAbsent) {
  EXPECT_FALSE(gguf_tokenizer(keys_of(GgufBuilder())));
  EXPECT_FALSE(gguf_tokenizer(keys_of(GgufBuilder().text("tokenizer.ggml.model", "no_vocab"))));
}

TEST(GgufTokenizer, RefusesWhatItDoesNotKnow) {
  const auto refused = [](const GgufBuilder& builder, const std::vector<std::string>& message) {
    expect_refused([&] { gguf_tokenizer(keys_of(builder)); }, message);
  };
  refused(byte_level_keys("falcon"), {"m.gguf", "\"falcon\"", "supported are gpt-2"});
  refused(byte_level_keys(nullptr), {"m.gguf: key 'tokenizer.ggml.pre' is missing", "m.tokenizer.json"});
  refused(GgufBuilder().text("tokenizer.ggml.model", "bert"),
          {"the kind \"bert\"", "only \"llama\" and \"gpt2\""});
  GgufBuilder none = GgufBuilder().text("tokenizer.ggml.model", "llama");
  refused(none, {"key 'tokenizer.ggml.tokens' is missing"});
  none.texts("tokenizer.ggml.tokens", {"a"});
  refused(none, {"key 'tokenizer.ggml.scores' is missing"});
  none.array("tokenizer.ggml.token_type", GgufType::kI32, 1, bytes_of<std::int32_t>({7}));
  refused(none, {"key 'tokenizer.ggml.token_type'", "found 7; expected 0 to 6"});
  GgufBuilder beyond = sentencepiece_keys();
  beyond.u32("tokenizer.ggml.bos_token_id", 8);
  refused(beyond, {"tokenizer.ggml.bos_token_id", "a whole number from 0 to 7"});
}

TEST(GgufTokenizer, OneBesideTheFileComesFirst) {
  const TempFolder folder;
  const std::string path = folder.write("m.gguf", byte_level_keys("falcon").build());
  const ModelConfig config;
  EXPECT_THROW(tokenizer_of(config, path), InputError);
  folder.write("m.tokenizer.json", json_text(small_tokenizer({{"a", "b"}})));
  EXPECT_EQ(tokenizer_of(config, path)->tokenizer.encode("ab"), Ids{256});
}

// tests/reference/make_smollm2_fixture.py
TEST(GgufTokenizer, OfSmolLm2GivesTheIdsOfTransformers) {
  const std::string path = DEEPTAIL_SOURCE "/real-models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << "; scripts/fetch-real-models gets it";
  const auto named = tokenizer_of({}, path);
  const InputFile file(std::string(DEEPTAIL_TEST_DATA) + "/model/smollm2.json");
  const Json rows = parse_json(file.text(), file.path());
  ASSERT_EQ(rows.size(), 50u);
  for (const Json& row : rows) {
    const auto text = row.at("text").get<std::string>();
    EXPECT_EQ(named->tokenizer.encode(text), row.at("ids").get<Ids>()) << text;
    EXPECT_EQ(named->tokenizer.decode(named->tokenizer.encode(text)), text);
  }
  EXPECT_TRUE(named->tokenizer.bos().empty());
}

}  // namespace
}  // namespace deeptail
