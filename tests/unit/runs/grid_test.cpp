#include "runs/grid.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "runs/claims.h"

namespace deeptail {
namespace {

constexpr const char* kGridSuite = R"(
name = "grid"
models = ["{}/models/dt-1l"]
distributions = ["{}/distributions/hex.json", "{}/distributions/caps.json"]
replicas = 2
budget = "2^10"
[targets]
band = [1e-6, 1e-4]
count = 5
truth = "{}/truth/{{model}}-{{dist}}.json"
[[methods]]
method = "mc"
[[methods]]
method = "ga-amls"
calibration = 1000
prior = ["student_t", "gaussian"]
kernel = ["mala", "pcn"]
)";

Grid example_grid() {
  const std::string root = DEEPTAIL_SOURCE;
  return build_grid(parse_suite(fmt::format(fmt::runtime(kGridSuite), root, root, root, root), "grid.toml"));
}

TEST(Suite, SweepsAndBudget) {
  const Grid grid = example_grid();
  std::vector<std::string> labels;
  for (const SuiteVariant& v : grid.suite.variants) labels.push_back(v.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"mc", "ga-amls/student_t/mala", "ga-amls/student_t/pcn",
                                              "ga-amls/gaussian/mala", "ga-amls/gaussian/pcn"}));
  EXPECT_EQ(grid.suite.variants[0].method.values, (SettingValues{{"budget", std::uint64_t{1024}}}));
  EXPECT_EQ(grid.suite.variants[1].method.calibration, 1000u);
  EXPECT_EQ(grid.suite.profiles.size(), 4u);
}

TEST(Suite, ShippedSuitesAreRead) {
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("{}/suites", DEEPTAIL_SOURCE))) {
    if (entry.path().extension() != ".toml") continue;
    const Suite suite = read_suite(entry.path().string());
    EXPECT_EQ(suite.name, entry.path().stem());
    EXPECT_FALSE(suite.variants.empty());
  }
}

TEST(GridItems, EveryItemOnceWithItsOwnSeed) {
  const Grid grid = example_grid();
  ASSERT_EQ(grid.items.size(), 2u * 5 * 5 * 2);
  EXPECT_EQ(grid.header.items, grid.items.size());
  std::set<std::string> ids;
  std::set<std::uint64_t> seeds, clouds;
  for (const GridItem& item : grid.items) {
    ids.insert(item.id);
    seeds.insert(grid.seed(item));
    clouds.insert(grid.calibration_seed(item));
    const RunItem described = grid.described(item);
    EXPECT_GE(described.q(), 1e-6);
    EXPECT_LE(described.q(), 1e-4);
  }
  EXPECT_EQ(ids.size(), grid.items.size());
  EXPECT_EQ(seeds.size(), grid.items.size());
  EXPECT_EQ(clouds.size(), 4u);  // one per pair and replica
}

// Runs of earlier versions go on: these are the ids that they have.
TEST(GridItems, IdsStayAndDoNotCollide) {
  const auto id = [](const std::string& model, const std::string& dist, const std::string& variant) {
    return item_id({.model = model, .dist = dist, .variant = variant, .target = {723}});
  };
  EXPECT_EQ(id("dt-1l", "hex", "ga-amls/student_t/mala"), "2670adf7bef2d53a");
  EXPECT_EQ(item_id({.model = "dt-2l", .dist = "caps", .variant = "mc", .target = {12, 15}, .replica = 3}),
            "031cb12ee7ea8ad4");
  EXPECT_NE(id("a", "b|c", "mc"), id("a|b", "c", "mc"));
  EXPECT_NE(id("a", "b", "|mc"), id("a", "b|", "mc"));
  EXPECT_NE(id("||||", "b", "mc"), id("|||", "|b", "mc"));
  EXPECT_NE(id("1:a", "b|", "mc"), id("1", ":ab|", "mc"));
}

TEST(GridTargets, NamedTokensWithAndWithoutCounts) {
  const std::string root = DEEPTAIL_SOURCE;
  const auto grid_of = [&](const std::string& targets) {
    return build_grid(
        parse_suite(fmt::format("name = \"g\"\nmodels = [\"{0}/models/dt-1l\"]\ndistributions = "
                                "[\"{0}/distributions/hex.json\"]\n[targets]\n{1}\n[[methods]]\n"
                                "method = \"mc\"\n",
                                root, targets),
                    "grid.toml"));
  };
  const Grid three = grid_of("tokens = [310, \" the\", 5]");
  ASSERT_EQ(three.pairs.size(), 1u);
  ASSERT_EQ(three.pairs[0].targets.size(), 3u);
  EXPECT_EQ(three.pairs[0].targets[0].token, 5);
  EXPECT_EQ(three.items.size(), 3u);
  const Grid known = grid_of("tokens = [69, 4000]\ntruth = \"" + root + "/truth/{model}-{dist}.json\"");
  EXPECT_EQ(known.header.truths.size(), 1u);
  EXPECT_EQ(known.described(known.items[0]).truth_count, 876220193u);
  EXPECT_TRUE(known.described(known.items[1]).truth_known());
  const auto refused = [&](const std::string& targets, const std::string& part) {
    try {
      grid_of(targets);
      FAIL() << targets;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  refused("tokens = [310, 4096]",
          "grid.toml: line 5: targets.tokens: token 4096 of model dt-1l: it has the tokens");
  refused("tokens = [\"no such token\"]", "it is not one token");
  refused("tokens = [69, \"e\"]", "token 69 of model dt-1l is there twice");
  refused("tokens = [69]\ntruth = \"/none.json\"", "/none.json: cannot open");
}

TEST(GridItems, ShardsPartTheGridEvenly) {
  const Grid grid = example_grid();
  for (const std::size_t n : {1, 2, 3, 5, 7, 200}) {
    std::set<std::size_t> seen;
    for (std::size_t i = 1; i <= n; ++i) {
      const auto mine = items_of_shard(grid, i, n);
      EXPECT_LE(mine.size(), grid.items.size() / n + 1);
      std::map<std::uint32_t, std::size_t> by_variant;
      for (const std::size_t k : mine) ++by_variant[grid.items[k].variant];
      for (const auto& [variant, count] : by_variant)
        EXPECT_LE(count, 20 / n + 1);  // no shard has all the slow ones
      seen.insert(mine.begin(), mine.end());
    }
    EXPECT_EQ(seen.size(), grid.items.size());
  }
}

TEST(GridItems, OnlySomeMethods) {
  const Grid grid = example_grid();
  const std::string name = grid.suite.variants[1].method.name;
  const auto mine = items_of_shard(grid, 1, 1, std::vector<std::string>{name});
  EXPECT_FALSE(mine.empty());
  std::size_t of_method = 0;
  for (const GridItem& item : grid.items) of_method += grid.suite.variants[item.variant].method.name == name;
  EXPECT_EQ(mine.size(), of_method);
  for (const std::size_t k : mine) EXPECT_EQ(grid.suite.variants[grid.items[k].variant].method.name, name);
  EXPECT_THROW(items_of_shard(grid, 1, 1, std::vector<std::string>{"no-such"}), InputError);
}

TEST(GridTargets, SpreadOverLogQAndNested) {
  Truth truth;
  std::uint64_t sum = 0;
  for (TokenId t = 0; t < 1000; ++t) {
    truth.counts[t] = t < 900 ? 2 : static_cast<std::uint64_t>(t) * 100;  // most are rare
    sum += truth.counts[t];
  }
  const std::uint64_t samples = std::uint64_t{1} << 32;
  truth.counts[5000] = samples - sum;
  truth.ranges = {{.source = "x", .count = samples}};
  SuiteTargets choice{.q_low = 4e-10, .q_high = 1e-3, .count = 40};
  const auto forty = choose_targets(truth, choice);
  ASSERT_EQ(forty.size(), 40u);
  std::size_t rare = 0;
  for (const GridTarget& t : forty) rare += t.count == 2 ? 1 : 0;
  EXPECT_EQ(rare, 20u);  // two slices of the band hold anything, and each gives half
  choice.count = 10;
  std::set<TokenId> all;
  for (const GridTarget& t : forty) all.insert(t.token);
  for (const GridTarget& t : choose_targets(truth, choice)) EXPECT_TRUE(all.contains(t.token));
  choice.count = 5000;
  EXPECT_EQ(choose_targets(truth, choice).size(), 1000u);
  choice.seed = 2;
  choice.count = 10;
  bool differs = false;
  for (const GridTarget& t : choose_targets(truth, choice)) differs = differs || !all.contains(t.token);
  EXPECT_TRUE(differs);
}

TEST(GridTargets, FewAreSpreadOverTheBandToo) {
  Truth truth;
  truth.ranges = {{.source = "x", .count = 1 << 21}};
  for (TokenId token = 0; token < 16; ++token) truth.counts[token] = std::uint64_t{3} << token;
  const SuiteTargets choice{.q_low = std::exp2(-20), .q_high = std::exp2(-4), .count = 4};
  std::vector<TokenId> tokens;
  for (const GridTarget& t : choose_targets(truth, choice)) tokens.push_back(t.token);
  EXPECT_EQ(tokens, (std::vector<TokenId>{0, 4, 8, 12}));
}

TEST(Claims, HeldByOneAndGoneWithIt) {
  std::string folder = (std::filesystem::temp_directory_path() / "deeptail-claims-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  {
    Claims a(folder);
    auto b = std::make_unique<Claims>(folder);
    EXPECT_TRUE(a.try_claim(3));
    EXPECT_FALSE(b->try_claim(3));
    EXPECT_TRUE(b->try_claim(4));
    EXPECT_FALSE(a.try_claim(4));
    b.reset();  // as when its process dies
    EXPECT_TRUE(a.try_claim(4));
    a.release(3);
    Claims c(folder);
    EXPECT_TRUE(c.try_claim(3));
    EXPECT_FALSE(c.try_claim(4));
  }
  EXPECT_THROW(Claims("/nowhere"), InputError);
  {
    Claims a(folder);
    EXPECT_TRUE(a.try_claim(3));
    std::filesystem::remove(folder + "/claims.lock");
    Claims b(folder);  // knows nothing of a's file
    EXPECT_TRUE(b.try_claim(5));
    EXPECT_TRUE(a.try_claim(6));
    EXPECT_FALSE(a.try_claim(5));
    EXPECT_FALSE(b.try_claim(3));  // a came over with what it had
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace deeptail
