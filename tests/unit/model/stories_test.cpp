// A real model of the Llama form, where it is at hand: stories260K, whose greedy story its author published.
#include "unit/model/fixture.h"
#include "unit/model/reference_forward.h"

namespace deeptail {
namespace {

const std::string kStories = DEEPTAIL_SHARED_DATA "/real/stories260K-hf";

// What llama2.c prints at temperature 0.
constexpr std::string_view kPublished =
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, "
    "she saw a "
    "big, red ball. She wanted to play with it, but it was too high.\nLily's mom said, \"Lily, let's go to "
    "the park.\" "
    "Lily was sad and didn't know what to do. She said, \"I want to play with your ball, but I can't find "
    "it.\"\nLily "
    "was sad and didn't know what to do. She said, \"I'm sorry, Lily. I didn't know what to do.\"\nLily "
    "didn't want to "
    "help her mom, so she";

class Stories : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kStories)) GTEST_SKIP() << "there is no " << kStories;
  }
};

// Pieces of SentencePiece's kind: U+2581 is a space, <0xXX> a byte.
std::vector<std::string> pieces() {
  const InputFile file(kStories + "/tokenizer.json");
  const Json json = parse_json(file.text(), file.path());
  std::vector<std::string> out(512);
  for (const auto& [piece, id] : json.at("model").at("vocab").items()) {
    std::string text = piece;
    if (text.size() == 6 && text.starts_with("<0x"))
      text = std::string(1, static_cast<char>(std::stoi(text.substr(3, 2), nullptr, 16)));
    for (std::size_t at; (at = text.find("\u2581")) != text.npos;) text.replace(at, 3, " ");
    out[id.get<std::size_t>()] = text;
  }
  return out;
}

TEST_F(Stories, GreedyStoryIsThePublishedOne) {
  const Transformer model = Transformer::load(kStories);
  const std::vector<std::string> text_of = pieces();
  ThreadPool pool(2);
  std::vector<TokenId> tokens = {1};  // BOS
  std::string story;
  while (tokens.size() <= 150) {
    const auto resid = residuals_of(model, {tokens, tokens.size()}, pool);
    TokenId said = -1;
    argmax(model.head(), 1, {resid.data(), 64}, pool, {&said, 1});
    tokens.push_back(said);
    story += text_of[static_cast<std::size_t>(said)];
  }
  if (story.starts_with(' ')) story.erase(0, 1);
  EXPECT_EQ(story, kPublished.substr(0, story.size()));
  EXPECT_GT(story.size(), 300u);
}

TEST_F(Stories, LogitsEqualPlainLoops) {
  const Transformer model = Transformer::load(kStories);
  const ModelConfig& c = model.config();
  const ModelWeights weights = model.raw_weights();
  const reference::Forward forward(c, weights);
  ThreadPool pool(2);
  double worst = 0.0;
  for (const std::size_t length : {1, 2, 21, 64}) {
    std::vector<TokenId> tokens = some_tokens(c, 1, length, 3);
    tokens[0] = 1;
    const auto resid = residuals_of(model, {tokens, length}, pool);
    AlignedVector<float> found(c.d_vocab);
    logits(model.head(), 1, {resid.data(), c.d_model}, pool, {found.data(), c.d_vocab});
    const auto expected = forward.logits(tokens);
    for (std::size_t i = 0; i < c.d_vocab; ++i) worst = std::max(worst, std::abs(found[i] - expected[i]));
  }
  EXPECT_LE(worst, 2e-4);
  RecordProperty("max_logit_error", std::to_string(worst));
}

TEST_F(Stories, SaysWhatItsSourceSays) {
  const Transformer model = Transformer::load(kStories);
  const std::vector<TokenId> tokens = {1,   435, 327, 263, 140, 159, 23,  41,  11,  92, 416,
                                       333, 467, 259, 311, 497, 374, 324, 279, 287, 478};
  ThreadPool pool(1);
  const auto resid = residuals_of(model, {tokens, tokens.size()}, pool);
  TokenId said = -1;
  argmax(model.head(), 1, {resid.data(), 64}, pool, {&said, 1});
  EXPECT_EQ(said, 426);
}

}  // namespace
}  // namespace deeptail
