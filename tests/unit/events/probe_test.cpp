#include "events/probe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "deeptail/tensors.h"
#include "sizes.h"
#include "unit/chain_law.h"
#include "unit/model/reference_forward.h"

namespace deeptail {
namespace {

const Transformer& probed() {
  static const Transformer found = Transformer::load(std::string(DEEPTAIL_SOURCE) + "/models/dt-4l");
  return found;
}

ProbeFile some_probe(std::size_t layer, ProbeFile::Place place, std::size_t index = 0) {
  ProbeFile out{.layer = layer, .place = place, .index = index, .bias = 0.25, .name = "p"};
  for (std::size_t i = 0; i < probed().config().d_model; ++i)
    out.direction.push_back(static_cast<float>(i % 5) - 1.5f);
  return out;
}

// By the equations, in double precision.
double reference_score(const ProbeFile& probe, double threshold, std::vector<TokenId> tokens,
                       std::size_t length) {
  static const ModelWeights weights = probed().raw_weights();
  ModelConfig config = probed().config();
  config.n_layers = probe.layer + 1;
  tokens.resize(length);
  const auto resid = reference::Forward(config, weights).residuals(tokens).back();
  double sum = probe.bias - threshold;
  for (std::size_t i = 0; i < resid.size(); ++i) sum += static_cast<double>(probe.direction[i]) * resid[i];
  return sum;
}

TEST(Probe, IsTheResidualOfItsLayerAndPosition) {
  const std::vector<TokenId> prompt = {1, 50, 7, 300, 12}, continuation = {9, 77};
  std::vector<TokenId> all = prompt;
  all.insert(all.end(), continuation.begin(), continuation.end());
  ThreadPool pool(2);
  for (const std::size_t layer : {0, 1, 3}) {
    for (const auto& [place, index, length] :
         {std::tuple{ProbeFile::Place::kPrompt, std::size_t{0}, prompt.size()},
          std::tuple{ProbeFile::Place::kContinuation, std::size_t{0}, all.size()},
          std::tuple{ProbeFile::Place::kIndex, std::size_t{2}, std::size_t{3}}}) {
      const ProbeFile file = some_probe(layer, place, index);
      const auto probe = std::make_shared<const Probe>(file, 1.5, probed());
      const SampledText text{prompt, continuation};
      double score = 0.0;
      ProbeScore(probe).scores({&text, 1}, {&score, 1}, pool);
      const double expected = reference_score(file, 1.5, all, length);
      EXPECT_NEAR(score, expected, 1e-3 * std::max(1.0, std::abs(expected))) << layer;
    }
  }
}

// The scorer of an event, held and proposed, against texts one by one.
TEST(Probe, ScorerDecidesAsOneByOneForAnyThreads) {
  constexpr std::size_t kLongestPrompt = 9, n = sized(60, 20);
  const ChainLaw law(kLongestPrompt, probed().config().d_vocab);
  for (const auto& [place, index] : {std::pair{ProbeFile::Place::kPrompt, std::size_t{0}},
                                     std::pair{ProbeFile::Place::kIndex, std::size_t{1}}}) {
    const auto probe = std::make_shared<const Probe>(some_probe(1, place, index), 0.0, probed());
    const ProbeEvent event(probe);
    EXPECT_EQ(event.n_parts(), 0u);
    for (const std::size_t threads : {1, 2, 7}) {
      ThreadPool pool(threads);
      const auto alone = [&](std::span<const TokenId> tokens) {
        const SampledText text{tokens, {}};
        double score = 0.0;
        ProbeScore(probe).scores({&text, 1}, {&score, 1}, pool);
        return score;
      };
      const auto scorer = event.scorer(probed(), law, {.max_held = n}, pool);
      const Inputs now = sample_inputs(law, 1, 0, n, pool), to = sample_inputs(law, 2, 0, n, pool);
      std::vector<double> scores(n), again(n);
      scorer->scores({now.batch()}, scores);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(scores[i], alone(now.sequence(i)));
      scorer->hold({now.batch()}, {});
      std::vector<std::uint32_t> held(n), first(n, 0);
      for (std::uint32_t i = 0; i < n; ++i) held[i] = i;
      std::vector<std::uint8_t> accept(n);
      scorer->rescore({{to.batch()}, held, first}, again);
      scorer->decide(scores[5], {{to.batch()}, held, first}, accept);
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_EQ(again[i], alone(to.sequence(i)));
        EXPECT_EQ(accept[i] != 0, again[i] >= scores[5]);
      }
    }
  }
}

TEST(Probe, FilesAndWhatIsRefused) {
  const ProbeFile probe = parse_probe(
      R"({"format":"deeptail-probe-1","layer":2,"position":"continuation","direction":[1,-0.5],"bias":3})",
      "f");
  EXPECT_EQ(probe.layer, 2u);
  EXPECT_EQ(probe.place, ProbeFile::Place::kContinuation);
  EXPECT_EQ(probe.direction, (std::vector<float>{1.0f, -0.5f}));
  EXPECT_EQ(probe.bias, 3.0);
  const auto refused = [](const std::string& rest) {
    EXPECT_THROW(parse_probe(R"({"format":"deeptail-probe-1",)" + rest + "}", "f"), InputError) << rest;
  };
  refused(R"("layer":-1,"position":"prompt","direction":[1])");
  refused(R"("layer":0,"position":"first","direction":[1])");
  refused(R"("layer":0,"position":-1,"direction":[1])");
  refused(R"("layer":0,"position":1.5,"direction":[1])");
  refused(R"("layer":0,"position":"prompt","direction":[])");
  refused(R"("layer":0,"position":"prompt","direction":[0,0])");
  refused(R"("layer":0,"position":"prompt","direction":[1e300])");
  refused(R"("layer":0,"position":"prompt","direction":"v.npy")");
  refused(R"("layer":0,"position":"prompt")");
  EXPECT_THROW(parse_probe(R"({"format":"other"})", "f"), InputError);
  EXPECT_THROW(Probe(some_probe(4, ProbeFile::Place::kPrompt), 0.0, probed()), InputError);
  EXPECT_THROW(Probe(probe, 0.0, probed()), InputError);
  EXPECT_THROW(Probe(some_probe(0, ProbeFile::Place::kIndex, 5), 0.0, probed()).length_of(3, 4), InputError);
}

TEST(Probe, DirectionsLieInFilesOfTensorsToo) {
  std::string pattern = (std::filesystem::temp_directory_path() / "deeptail-probe-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  const std::vector<float> direction = {0.5f, -2.0f, 1.0f};
  write_npy(folder + "/v.npy", direction, std::vector<std::int64_t>{3});
  std::ofstream(folder + "/probe.json")
      << R"({"format":"deeptail-probe-1","layer":0,"position":4,"direction":"v.npy"})";
  const ProbeFile probe = read_probe(folder + "/probe.json");
  EXPECT_EQ(probe.direction, direction);
  EXPECT_EQ(probe.index, 4u);
  EXPECT_EQ(probe.name, "probe.json");
  std::ofstream(folder + "/up.json")
      << R"({"format":"deeptail-probe-1","layer":0,"position":4,"direction":"../v.npy"})";
  EXPECT_THROW(read_probe(folder + "/up.json"), InputError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace deeptail
