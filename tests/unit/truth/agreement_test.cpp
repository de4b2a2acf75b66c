// A quick look at what tests/statistical/truth_agreement checks in full: the shipped counts, made on a GPU.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "core/json.h"
#include "deeptail/truth.h"
#include "estimators/subject.h"
#include "sizes.h"

namespace deeptail {
namespace {

// False-alarm rate: 1e-4 for each chi-square, 6e-7 for each of about 40 tokens.
TEST(Agreement, ShippedCounts) {
  ThreadPool pool;
  const std::uint64_t n = sized(1 << 14, 1 << 10);
  for (const std::string name : {"hex", "caps"}) {
    const Distribution dist = shipped(name);
    const Truth shipped_truth = read_truth(fmt::format("{}/truth/dt-1l-{}.json", DEEPTAIL_SOURCE, name));
    Truth counted{.model = "dt-1l",
                  .dist = name,
                  .model_sha256 = shipped_truth.model_sha256,
                  .dist_sha256 = dist.sha256,
                  .ranges = {{"deeptail", 1, 0, n}}};
    EXPECT_EQ(dist.sha256, shipped_truth.dist_sha256);
    EXPECT_EQ(model_sha256(fmt::format("{}/models/dt-1l", DEEPTAIL_SOURCE)), shipped_truth.model_sha256);
    InputRunner runner(dt_1l(), dist, 1, pool);
    for (const TokenId token : runner.run(0, n)) ++counted.counts[token];
    const TruthComparison c = compare_truth(counted, shipped_truth);
    EXPECT_GT(c.n_tokens, sized(15u, 3u));
    EXPECT_LT(c.max_z, 5.0) << name << " token " << c.max_z_token;
    EXPECT_GT(c.p_value, 1e-4) << name;
  }
}

// Counts and the models and distributions beside them go together.
TEST(ShippedCounts, BelongToTheShippedModels) {
  std::map<std::string, std::string> models;
  for (const std::string name : {"dt-1l", "dt-2l", "dt-4l"})
    models[name] = model_sha256(fmt::format("{}/models/{}", DEEPTAIL_SOURCE, name));
  std::size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DEEPTAIL_SOURCE "/truth")) {
    if (entry.path().extension() != ".json" || is_event_counts(entry.path().string())) continue;
    const Truth truth = read_truth(entry.path().string());
    EXPECT_EQ(truth.model_sha256, models.at(truth.model)) << entry.path();
    EXPECT_EQ(truth.dist_sha256, shipped(truth.dist).sha256) << entry.path();
    ++n_files;
  }
  EXPECT_EQ(n_files, 24u);
}

// Those of px-*, whose weights are made by training/px: compressed, of the hashes that it checks.
TEST(ShippedCounts, BelongToTheModelsThatAreMadeAgain) {
  const InputFile file(DEEPTAIL_SOURCE "/training/px/expected.json");
  const Json expected = parse_json(file.text(), file.path());
  std::size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DEEPTAIL_SOURCE "/truth")) {
    if (entry.path().extension() != ".gz") continue;
    const Truth truth = read_truth(entry.path().string());
    EXPECT_EQ(truth.model_sha256, expected.at(truth.model).get<std::string>()) << entry.path();
    EXPECT_EQ(truth.dist_sha256, shipped("neox-digits/" + truth.dist).sha256) << entry.path();
    ++n_files;
  }
  EXPECT_EQ(n_files, 8 * expected.size());
}

}  // namespace
}  // namespace deeptail
