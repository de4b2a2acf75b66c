// deeptail estimate, run as a user runs it.
#include <fmt/format.h>

#include <cmath>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

class EstimateCommand : public CliTest {
 protected:
  // A target may hold quotes and spaces: it goes through the shell in single quotes.
  static std::string estimate(const std::string& target,
                              const std::string& rest = "--method mc --budget 500") {
    return "estimate --model dt-1l --dist hex --target '" + target + "' " + rest;
  }
  Json target_of(const std::string& target) const { return json(estimate(target)).at("target"); }
};

TEST_F(EstimateCommand, McKeepsTheContract) {
  const auto e = json(estimate("69", "--method mc --budget 2^12 --seed 5"));
  const double p = e.at("p").get<double>();
  EXPECT_NEAR(p, 0.204, 0.03);  // 5 standard deviations
  EXPECT_NEAR(e.at("log10_p").get<double>(), std::log10(p), 1e-12);
  EXPECT_LT(e.at("ci95").at(0).get<double>(), p);
  EXPECT_GT(e.at("ci95").at(1).get<double>(), p);
  EXPECT_EQ(e.at("status"), "ok");
  EXPECT_EQ(e.at("guarantee"), "unbiased");
  EXPECT_EQ(e.at("method"), "mc");
  EXPECT_EQ(e.at("model"), "dt-1l");
  EXPECT_EQ(e.at("dist"), "hex");
  EXPECT_EQ(e.at("seed"), 5);
  EXPECT_EQ(e.at("cost").at("forward"), 4096);
  EXPECT_EQ(e.at("triggers").size(), 3u);
  EXPECT_TRUE(e.at("triggers").at(0).at("text").get<std::string>().starts_with("<|BOS|>"));
}

TEST_F(EstimateCommand, TokensplitIsTheDefaultAndKeepsTheContract) {
  const auto e = json(estimate("49", "--budget 20000 --replicas 2 --seed 3"));
  EXPECT_EQ(e.at("method"), "tokensplit");
  EXPECT_EQ(e.at("guarantee"), "unbiased");
  EXPECT_EQ(e.at("status"), "ok");
  const double p = e.at("p").get<double>();
  EXPECT_GT(p, 1e-9);  // the truth is 6.1e-6; a small budget only has to get near it
  EXPECT_LT(p, 1e-3);
  EXPECT_LE(e.at("ci95").at(0).get<double>(), p);
  EXPECT_GE(e.at("ci95").at(1).get<double>(), p);
  EXPECT_NEAR(e.at("certain_low").get<double>(), 0.05 * p, 1e-6 * p);
  EXPECT_EQ(e.at("replicas").size(), 2u);
  EXPECT_GT(e.at("levels").size(), 2u);
  EXPECT_EQ(e.at("levels").back().at("level"), 0.0);
  for (const char* key : {"forward", "backward", "score_evals", "flops", "seconds"})
    EXPECT_TRUE(e.at("cost").contains(key));
  ASSERT_FALSE(e.at("triggers").empty());
  const auto tokens = e.at("triggers").at(0).at("tokens").get<std::vector<int>>();
  std::string list;
  for (const int t : tokens) list += (list.empty() ? "" : ",") + std::to_string(t);
  EXPECT_EQ(json("model logits --model dt-1l --tokens " + list).at("argmax"), 49);  // triggers do trigger
}

TEST_F(EstimateCommand, FewInputsAreAllCounted) {
  const std::string few =
      write("few.json",
            R"({"format":"deeptail-distribution-1","name":"few","description":"","d_vocab":4096,
      "tables":{"bos":{"ids":[0],"probabilities":[1.0]},"digit":{"ids":[16,17,18,69],"probabilities":[0.5,0.25,0.125,0.125]}},
      "positions":["bos","digit","digit","digit"]})");
  const std::string question = "estimate --model dt-1l --dist " + few + " --target ";
  const auto a = json(question + "16"), b = json(question + "16 --method mc --seed 2");
  EXPECT_EQ(a.at("guarantee"), "exact");
  EXPECT_EQ(a.at("cost").at("forward"), 64);
  EXPECT_EQ(a.at("p"), b.at("p"));
  EXPECT_EQ(a.at("ci95").at(0), a.at("p"));
  EXPECT_EQ(a.at("ci95").at(1), a.at("p"));
  EXPECT_EQ(a.at("p").get<double>() * 512.0, std::round(a.at("p").get<double>() * 512.0));  // 8^3 units
  EXPECT_NE(run(question + "1 --method mc").out.find("p = 0, exactly: all 64 inputs were counted"),
            std::string::npos);
  EXPECT_EQ(json(question + "16 --method mc --budget 63").at("guarantee"), "unbiased");
}

TEST_F(EstimateCommand, AllTokensAreATable) {
  const std::string all =
      "estimate --model dt-1l --dist hex --all --budget 1e4 --above 1e-5 --seed 4 --quiet ";
  const std::string counts = path("all.json");
  const std::string table = run(all + "--out '" + counts + "'").out;
  EXPECT_NE(table.find("dt-1l on hex, all tokens from 1e-05 to 1"), std::string::npos);
  EXPECT_NE(table.find("mc          \"e\"\n"), std::string::npos);
  EXPECT_NE(table.find("were never said: each is below"), std::string::npos);
  std::istringstream lines(run(all + "--below 0.01 --json").out);
  std::vector<Json> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(parse_json(line, "line"));
  ASSERT_GT(rows.size(), 10u);
  EXPECT_EQ(rows.back().at("rows"), rows.size() - 1);
  EXPECT_EQ(rows.back().at("stopped"), false);
  rows.pop_back();
  double before = 0.01;
  for (const Json& row : rows) {
    const double p = row.at("p").get<double>();
    EXPECT_LE(p, before);
    EXPECT_GE(p, 1e-5);
    EXPECT_LE(row.at("ci95").at(0).get<double>(), p);
    EXPECT_GE(row.at("ci95").at(1).get<double>(), p);
    EXPECT_EQ(row.at("guarantee"), "unbiased");
    EXPECT_EQ(row.at("target").size(), 1u);
    if (row.at("method") == "mc") {
      EXPECT_GT(row.at("diagnostics").at("count").get<double>(), 0.0);
    }
    before = p;
  }
  // The counted part is what truth counts.
  const auto found = parse_json(read(counts), counts);
  const std::string again = path("again.json");
  run(fmt::format(
      "truth --model dt-1l --dist hex --seed 4 --first 2305843009213693952 --samples {} --quiet --out '{}'",
      found.at("samples").get<std::uint64_t>(), again));
  EXPECT_EQ(read(counts), read(again));
}

// Too few particles: the replicas spread, and the answer says so.
TEST_F(EstimateCommand, ReplicasThatSpreadAreTold) {
  const auto e =
      json(estimate("723", "--particles 16 --moves 8 --first-draw 256 --budget 1e5 --seed 1 --tilt none"));
  EXPECT_EQ(e.at("guarantee"), "unbiased");
  ASSERT_FALSE(e.at("warnings").empty());
  const double p = e.at("p").get<double>();
  EXPECT_GT(p, 0.0);
  EXPECT_NEAR(e.at("certain_low").get<double>(), 0.05 * p, 1e-6 * p);
}

// The truth is 0.204: with a hundred effective hits both are within a factor of 2.
TEST_F(EstimateCommand, GradientMethodsKeepTheContract) {
  for (const std::string method : {"itgis", "mhis"}) {
    const auto e =
        json(estimate("69", "--method " + method + " --budget 2^10 --burn-in 16 --temperature 5 --seed 3"));
    EXPECT_EQ(e.at("method"), method);
    EXPECT_EQ(e.at("status"), "ok");
    EXPECT_EQ(e.at("guarantee"), method == "itgis" ? "unbiased" : "consistent");
    const double p = e.at("p").get<double>();
    EXPECT_GT(p, 0.1);
    EXPECT_LT(p, 0.4);
    EXPECT_LE(e.at("ci95").at(0).get<double>(), p);
    EXPECT_GE(e.at("ci95").at(1).get<double>(), p);
    EXPECT_EQ(e.at("cost").at("backward"), method == "itgis" ? 1024 : 1024 + 32 * 16 + 32);
    for (const char* key : {"temperature", "hits", "effective_sample_size", "largest_weight_share"})
      EXPECT_TRUE(e.at("diagnostics").contains(key)) << key;
    EXPECT_EQ(e.at("triggers").size(), 3u);
  }
  const auto zero = json(estimate("3000", "--method itgis --budget 512"));
  EXPECT_EQ(zero.at("status"), "not_reached_upper_bound");
  EXPECT_LT(zero.at("ci95").at(1).get<double>(), 0.02);
  EXPECT_TRUE(json(estimate("69", "--method mhis --budget 64 --burn-in 0 --normaliser bridge"))
                  .at("diagnostics")
                  .contains("log_normaliser"));
}

TEST_F(EstimateCommand, GradientMethodsRefuseNonsense) {
  refused(estimate("69", "--method itgis --temperature 0"), "--temperature");
  refused(estimate("69", "--method itgis --budget 10"), "at least one batch");
  refused(estimate("69", "--method mhis --chains 1"), "at least 2");
  refused(estimate("69", "--method mhis --normaliser mean"), "expected harmonic or bridge");
  refused(estimate("69", "--method mhis --burn-in x"), "--burn-in");
  refused("estimate --activations a.npy --unembed u --target 3 --method itgis",
          "expected --model and --dist");
}

TEST_F(EstimateCommand, TokensplitBudgetAndDevice) {
  refused(estimate("49", "--budget 10"), "at least 1000 forward passes");
  refused(estimate("49", "--replicas 1"), "expected at least 2");
  refused(estimate("49", "--device cuda"),
          "use the CPU (--device cpu)");  // there may be no device, or no backend
  refused(estimate("49", "--device cuda --method mc"), "--device cuda: mc runs on the CPU only");
  refused(estimate("49", "--device tpu"), "expected cpu or cuda");
  // Token 1 is never said after hex strings within reach of so small a budget: exit code 4, with a bound.
  const auto spent = run(estimate("1", "--budget 1000 --replicas 2 --json"));
  EXPECT_EQ(spent.code, 4);
  EXPECT_EQ(parse_json(spent.out, "output").at("status"), "budget_spent");
}

TEST_F(EstimateCommand, NeverSeenHasAnUpperBound) {
  const auto e = json(estimate("3000"));
  EXPECT_EQ(e.at("p"), 0.0);
  EXPECT_EQ(e.at("ci95").at(0), 0.0);
  EXPECT_GT(e.at("ci95").at(1).get<double>(), 0.007);
  EXPECT_EQ(e.at("status"), "not_reached_upper_bound");
  EXPECT_NE(run(estimate("3000")).out.find("p < 0.00735"), std::string::npos);
}

TEST_F(EstimateCommand, TargetsByIdAndByToken) {
  using Ids = std::vector<int>;
  EXPECT_EQ(target_of("293"), Ids{293});
  EXPECT_EQ(target_of(" the"), Ids{293});
  EXPECT_EQ(target_of(","), Ids{12});
  EXPECT_EQ(target_of("7"), Ids{7});
  EXPECT_EQ(target_of("\"7\""), Ids{23});
  EXPECT_EQ(target_of("69, the,\",\""), (Ids{12, 69, 293}));
  refused(estimate("5000"), "5000");
  refused(estimate(" thexx"),
          "is not a token id and not one token of this model: it is 3 tokens: ids 293, 88, 88");
  refused(estimate("1,"), "it is empty");
}

TEST_F(EstimateCommand, BadFlags) {
  refused(estimate("69", "--method foo"),
          "method foo: expected one of tokensplit, all-tokens, auto, payoff, static, trajectory, forecast, "
          "ga-amls, qld, qld-arc");
  refused(estimate("69", "--budget 0"), "--budget");
  refused("estimate --model dt-1l --dist hex", "--target is required");
}

TEST_F(EstimateCommand, SeveralTargetsAreAsIfAskedOneByOne) {
  const auto without_time = [](Json e) {
    e.erase("command");
    e["cost"].erase("seconds");
    return e;
  };
  const std::string file = write("targets", "69\n\n\"f\"\n 69,70 \n");
  for (const std::string& rest :
       {std::string("--method mc --budget 600"), std::string("--method gld --calibration 300")}) {
    const Outcome several = run("estimate --model dt-1l --dist hex --target 70 --target 69,71 --targets " +
                                file + " --json " + rest);
    ASSERT_EQ(several.code, 0) << several.err;
    std::istringstream lines(several.out);
    for (const char* target : {"70", "69,71", "69", "\"f\"", "69,70"}) {
      std::string line;
      ASSERT_TRUE(std::getline(lines, line));
      EXPECT_EQ(without_time(parse_json(line, "line")), without_time(json(estimate(target, rest)))) << target;
    }
  }
  const Outcome table =
      run("estimate --model dt-1l --dist hex --target 69 --target 4000 --method mc --budget 600");
  EXPECT_EQ(table.code, 0);
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 4) << table.out;
  EXPECT_NE(table.out.find("\n69 \"e\" "), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("not_reached_upper_bound"), std::string::npos) << table.out;
}

TEST_F(EstimateCommand, MistakesInAFileOfTargetsAreTold) {
  const auto with = [&](const std::string& text) {
    return "estimate --model dt-1l --dist hex --method mc --budget 500 --targets " + write("t", text);
  };
  refused(with("69\nthe\n"), "t: line 2: expected ids and tokens in double quotes");
  refused(with("69\n1.5\n"), "t: line 2: expected ids and tokens");
  refused(with("\"To be\"\n"), "t: line 1: \"To be\" is not a token id and not one token of this model");
  refused(with("69\n99999\n"), "t: line 2: ");
  refused(with("\n"), "expected one target a line, found none");
  refused("estimate --model dt-1l --dist hex", "--target is required");
}

TEST_F(EstimateCommand, JsonTellsHowToRepeatIt) {
  const Json e = json(estimate("69,310"));
  EXPECT_EQ(e.at("target_text"), Json({"e", "ic"}));
  EXPECT_EQ(e.at("command"), Json({"deeptail", "estimate", "--model", "dt-1l", "--dist", "hex", "--target",
                                   "69,310", "--method", "mc", "--budget", "500", "--json"}));
}

}  // namespace
}  // namespace deeptail
