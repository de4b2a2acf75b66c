// Models that others trained, as GGUF files: stories260K against its HuggingFace folder, SmolLM2 against
// transformers' own loading of the file, in float64 (tests/reference/make_smollm2_fixture.py).
#include <cmath>
#include <numeric>

#include "model/families/gguf_config.h"
#include "quantised_files.h"
#include "sizes.h"
#include "unit/model/fixture.h"

namespace deeptail {
namespace {

using namespace testing;
namespace fs = std::filesystem;

const std::string kStoriesFolder = DEEPTAIL_SHARED_DATA "/real/stories260K-hf";
const std::string kSmolLm2 = DEEPTAIL_SOURCE "/real-models/SmolLM2-135M-Instruct.Q4_1.gguf";

std::vector<float> logits_after(const Transformer& model, const std::vector<TokenId>& tokens,
                                ThreadPool& pool) {
  const ModelConfig& c = model.config();
  AlignedVector<float> resid(c.d_model);
  std::vector<float> out(c.d_vocab);
  final_residuals(model, {tokens, tokens.size()}, pool, {resid.data(), c.d_model});
  logits(model.head(), 1, {resid.data(), c.d_model}, pool, {out.data(), c.d_vocab});
  return out;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  return most;
}

class StoriesAsGguf : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kStoriesFolder)) GTEST_SKIP() << "no model at " << kStoriesFolder;
  }
  const std::vector<TokenId> input_ = {1,   435, 327, 263, 140, 159, 23,  41,  11,  92, 416,
                                       333, 467, 259, 311, 497, 374, 324, 279, 287, 478};
  TempFolder folder_;
  ThreadPool pool_{2};
};

TEST_F(StoriesAsGguf, InFloatsIsTheSameModel) {
  const Transformer folder = Transformer::load(kStoriesFolder);
  const std::string path = folder_.write("stories.gguf", llama_as_gguf(kStoriesFolder, Quantise::kNone));
  const Transformer file = Transformer::load(path);
  EXPECT_EQ(file.config().arch, folder.config().arch);
  EXPECT_EQ(logits_after(file, input_, pool_), logits_after(folder, input_, pool_));
  EXPECT_EQ(argmax_of(logits_after(file, input_, pool_)), 426);
}

// What the blocks hold is used as it is; the logits move by no more than rounding to 8 bits can explain.
TEST_F(StoriesAsGguf, InBlocksIsTheModelOfItsRoundedWeights) {
  const Transformer exact = Transformer::load(kStoriesFolder);
  const Transformer rounded =
      Transformer::load(folder_.write("rounded.gguf", llama_as_gguf(kStoriesFolder, Quantise::kRounded)));
  const Transformer blocks =
      Transformer::load(folder_.write("blocks.gguf", llama_as_gguf(kStoriesFolder, Quantise::kQ8_0)));
  const auto found = logits_after(blocks, input_, pool_);
  EXPECT_EQ(found, logits_after(rounded, input_, pool_));
  const double moved = largest_difference(found, logits_after(exact, input_, pool_));
  EXPECT_GT(moved, 1e-4);
  EXPECT_LT(moved, 0.2);
  EXPECT_EQ(argmax_of(found), 426);
}

struct Prompt {
  std::vector<TokenId> ids, best, more;
  std::vector<double> logits;  // of best, in float64
  double gap, float32_off;     // float32_off: how far transformers' float32 is from them

  // As near to the truth as transformers is, or as near as is asked of the small models.
  double tolerance() const { return std::max(2e-4, 1.5 * float32_off); }
};

std::vector<Prompt> smollm2_prompts() {
  const InputFile file(std::string(DEEPTAIL_TEST_DATA) + "/model/smollm2.json");
  std::vector<Prompt> prompts;
  for (const Json& row : parse_json(file.text(), file.path()))
    prompts.push_back({row.at("ids").get<std::vector<TokenId>>(), row.at("best").get<std::vector<TokenId>>(),
                       row.at("more").get<std::vector<TokenId>>(), flat(row.at("logits")), row.at("gap"),
                       row.at("float32_off")});
  return prompts;
}

// Sequences that grow by the token that the model says.
class Continuation {
 public:
  Continuation(const Transformer& model, const std::vector<Prompt>& prompts, std::size_t n_more,
               ThreadPool& pool)
      : model_(model), pool_(pool), n_(prompts.size()) {
    for (const Prompt& p : prompts) length_ = std::max(length_, p.ids.size() + n_more);
    tokens_.resize(n_ * length_);
    for (std::size_t i = 0; i < n_; ++i) {
      std::ranges::copy(prompts[i].ids, tokens_.data() + i * length_);
      lengths_.push_back(static_cast<std::uint32_t>(prompts[i].ids.size()));
    }
    resid_.resize(n_ * model.config().d_model);
    rescorer_.emplace(model, n_, length_, pool);
    rescorer_->reset({tokens_, length_, lengths_}, rows());
  }
  Rows rows() { return {resid_.data(), model_.config().d_model}; }
  // The best tokens, which are appended.
  std::vector<TokenId> step() {
    std::vector<TokenId> said(n_);
    argmax(model_.head(), n_, rows(), pool_, said);
    std::vector<Rescorer::Proposal> proposals;
    for (std::size_t i = 0; i < n_; ++i) {
      tokens_[i * length_ + lengths_[i]++] = said[i];
      proposals.push_back({i, tokens_.data() + i * length_, lengths_[i]});
    }
    rescorer_->propose(proposals, [&](std::size_t first, std::size_t n, ConstRows resid,
                                      std::span<std::uint8_t> accept, std::size_t) {
      for (std::size_t i = 0; i < n; ++i)
        std::copy_n(resid.row(i), model_.config().d_model, rows().row(first + i));
      std::ranges::fill(accept, 1);
    });
    return said;
  }

 private:
  const Transformer& model_;
  ThreadPool& pool_;
  std::size_t n_, length_ = 0;
  std::vector<TokenId> tokens_;  // [n, length]
  std::vector<std::uint32_t> lengths_;
  AlignedVector<float> resid_;  // [n, d_model]
  std::optional<Rescorer> rescorer_;
};

TEST(SmolLm2, LogitsAndContinuationsAreThoseOfTransformers) {
  if (!fs::exists(kSmolLm2)) GTEST_SKIP() << "no " << kSmolLm2 << "; scripts/fetch-real-models gets it";
  if (sized(false, true)) GTEST_SKIP() << "takes minutes under the sanitizers";
  const Transformer model = Transformer::load(kSmolLm2);
  const std::vector<Prompt> prompts = smollm2_prompts();
  ASSERT_EQ(prompts.size(), 50u);
  ThreadPool pool;
  Continuation continuation(model, prompts, prompts[0].more.size(), pool);
  const std::size_t n = prompts.size(), d_vocab = model.config().d_vocab;
  std::vector<float> all(n * d_vocab);
  logits(model.head(), n, continuation.rows(), pool, {all.data(), d_vocab});
  for (std::size_t i = 0; i < n; ++i) {
    double most = 0;
    for (std::size_t k = 0; k < prompts[i].best.size(); ++k)
      most = std::max(most, std::abs(double{all[i * d_vocab + static_cast<std::size_t>(prompts[i].best[k])]} -
                                     prompts[i].logits[k]));
    EXPECT_LE(most, prompts[i].tolerance()) << "prompt " << i;
  }
  for (std::size_t step = 0; step < prompts[0].more.size(); ++step) {
    const auto said = continuation.step();
    for (std::size_t i = 0; i < n; ++i) {
      if (prompts[i].gap < 1e-3) continue;  // rounding may decide there
      EXPECT_EQ(said[i], prompts[i].more[step]) << "prompt " << i << " step " << step;
    }
  }
}

}  // namespace
}  // namespace deeptail
