// deeptail loss and deeptail spb, run as a user runs them.
#include <cmath>
#include <cstdio>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

using LossCommand = CliTest;

constexpr const char* kPairs = "truth,estimate\n1e-9,2e-9\n1e-6,5e-7\n1e-3,1e-3\n";

TEST_F(LossCommand, ScoresAFile) {
  const Json j = json("loss " + write("pairs.csv", kPairs) + " --alpha 2 --gamma 0 --epsilon 0");
  const double over = std::log(2.0) - 0.5, under = 1.0 - std::log(2.0);  // Itakura-Saito of factors 2 and 1/2
  EXPECT_NEAR(j["spb"].get<double>(), (over + under) / 3.0, 1e-15);
  EXPECT_EQ(j["spb"], j["itakura_saito"]);
  EXPECT_NEAR(j["log_squared"].get<double>(), 2.0 / 3.0 * std::pow(std::log(2.0), 2), 1e-14);
  EXPECT_NEAR(j["squared"].get<double>(), (1e-18 + 2.5e-13) / 3.0, 1e-27);
  EXPECT_EQ(j["n"], 3);
  EXPECT_EQ(j["zeros"], 0);
  EXPECT_EQ(j["epsilon_rule"], "given");
}

TEST_F(LossCommand, ProfilesChooseTheirShift) {
  const std::string file = write("pairs.csv", kPairs);
  const struct {
    const char* name;
    double alpha, gamma;
    const char* rule;
  } rows[] = {{"benchmarking", 1.5, 0, "heuristic"},
              {"oversight", 2, 0, "corollary"},
              {"stress", 2, 1, "corollary"},
              {"audit", 4, 2, "corollary"}};
  for (const auto& row : rows) {
    const Json j = json("loss " + file + " --profile " + row.name);
    EXPECT_EQ(j["profile"], row.name);
    EXPECT_EQ(j["alpha"], row.alpha);
    EXPECT_EQ(j["gamma"], row.gamma);
    EXPECT_EQ(j["epsilon_rule"], row.rule);
    EXPECT_GT(j["epsilon"].get<double>(), 0.0);
  }
  EXPECT_EQ(json("loss " + file)["profile"], "benchmarking");
  EXPECT_NEAR(json("loss " + file)["epsilon"].get<double>(), 1e-13, 1e-27);
}

TEST_F(LossCommand, InfinityIsAWord) {
  const std::string file = write("pairs.csv", "truth,estimate\n1e-9,0\n");
  const Json j = json("loss " + file + " --epsilon 0");
  for (const char* field : {"spb", "itakura_saito", "log_squared"}) EXPECT_EQ(j[field], "inf") << field;
  EXPECT_EQ(j["zeros"], 1);
  EXPECT_TRUE(json("loss " + file)["spb"].is_number());
  EXPECT_NE(run("loss " + file + " --epsilon 0").out.find("inf"), std::string::npos);
}

TEST_F(LossCommand, CalibrationNoiseAndRival) {
  std::string a = "truth,estimate\n", b = a;
  for (int i = 1; i <= 12; ++i) {
    const double count = 3.0 * i * i, q = count / 4294967296.0;
    char line[100];
    std::snprintf(line, sizeof line, "%.17g,%.17g\n", q, q * (i % 2 ? 1.2 : 0.8));
    a += line;
    std::snprintf(line, sizeof line, "%.17g,%.17g\n", q, q * (i % 2 ? 3.0 : 0.3));
    b += line;
  }
  const Json j =
      json("loss " + write("a.csv", a) + " --calibrate --samples 2^32 --versus " + write("b.csv", b));
  EXPECT_EQ(j["calibration"]["uses_truth"], true);
  EXPECT_TRUE(j["calibration"]["itakura_saito"].is_number());
  EXPECT_GT(j["noise_floor"]["spb"].get<double>(), 0.0);
  EXPECT_EQ(j["versus"]["first_beats_second"], 1.0);
  EXPECT_LT(j["versus"]["ci95"][1].get<double>(), 0.0);
  EXPECT_NEAR(j["versus"]["difference"].get<double>(),
              j["spb"].get<double>() - j["versus"]["spb"].get<double>(), 1e-12);
}

TEST_F(LossCommand, RefusesBadInputWithOneSentence) {
  const std::string good = write("pairs.csv", kPairs);
  refused("loss", "pairs.csv");
  refused("loss " + path("missing.csv"), "cannot open");
  refused("loss " + folder_.string(), "expected a regular file");
  refused("loss " + write("bad.csv", "truth,estimate\n0.1,0.2\n0.1,2\n"), "line 3: the estimate");
  refused("loss " + good + " --profile nonsense", "choose one of benchmarking, oversight, stress, audit");
  refused("loss " + good + " --alpha=-1", "alpha must be");
  refused("loss " + good + " --alpha nan", "--alpha: expected a finite number");
  refused("loss " + good + " --epsilon inf", "--epsilon: expected a finite number");
  refused("loss " + good + " --samples 2^99", "--samples must be");
  refused("loss " + good + " --samples 1000", "line 2: a truth of");
  refused("loss " + good + " --calibrate", "at least 5 pairs");
  refused("loss " + good + " --versus " + write("short.csv", "truth,estimate\n1e-9,0\n"), "has 1 rows");
  refused("loss " + good + " --versus " + write("other.csv", "truth,estimate\n1e-9,0\n2e-6,0\n1e-3,0\n"),
          "line 3: the truth");
}

TEST_F(LossCommand, SpbAlpha) {
  const Json j = json("spb alpha --ratio 3 --m0 2");
  EXPECT_NEAR(j["alpha"].get<double>(), 2.687845982128763781, 1e-12);
  EXPECT_GE(j["ratio_at_m0"].get<double>(), 3.0);
  EXPECT_NE(run("spb alpha --ratio 3 --m0 2").out.find("2.687845982"), std::string::npos);
  refused("spb alpha --ratio 0.5 --m0 2", "ratio must be");
  refused("spb alpha --ratio 3 --m0 1", "m0 must be");
}

TEST_F(LossCommand, SpbEpsilon) {
  const std::string box = "spb epsilon --alpha 2 --eta 0.05 --qmin 1e-9 --mmax 100 --m0 2";
  const Json j = json(box + " --ratio 1.2");
  EXPECT_NEAR(j["theorem1"].get<double>(), 1e-11 * (1.0 / std::sqrt(0.95) - 1.0), 1e-24);
  EXPECT_EQ(j["corollary"], j["theorem1"]);
  EXPECT_EQ(j["binds"], "theorem1");
  EXPECT_GT(j["theorem2"].get<double>(), j["ratio"].get<double>());
  EXPECT_EQ(j["heuristic"], 1e-13);
  EXPECT_TRUE(json("spb epsilon --alpha 1.5 --qmin 1e-9")["corollary"].is_null());
  EXPECT_TRUE(json(box + " --ratio 2")["ratio"].is_null());
  EXPECT_EQ(json(box + " --epsilon 1e-12")["guarantees"].size(), 3u);
  EXPECT_NE(run(box + " --ratio 2").out.find("the ratio without shift is 1.5887"), std::string::npos);
  refused("spb epsilon --alpha 2 --qmin 0", "qmin must lie in (0,1)");
  refused("spb epsilon --alpha 2 --qmin 1e-9 --m0 200", "m0 must lie in");
  refused("spb epsilon --alpha 2 --qmin 1e-9 --epsilon=-1", "epsilon must be");
}

TEST_F(LossCommand, SpbTable) {
  const Json j = json("spb table --alpha 2 --m 2,10,100");
  ASSERT_EQ(j["rows"].size(), 3u);
  EXPECT_NEAR(j["rows"][1]["i_fp"].get<double>(), std::log(10.0) - 0.9, 1e-15);
  EXPECT_NEAR(j["rows"][1]["i_fn"].get<double>(), 9.0 - std::log(10.0), 1e-14);
  refused("spb table --alpha 2 --m 1", "m must be");
}

TEST_F(LossCommand, SpbExperimentsWriteWholeFiles) {
  const std::string out = path("deep/er");
  ASSERT_EQ(run("spb experiments --out " + out).code, 0);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    const std::string text = read(entry.path());
    if (entry.path().extension() == ".svg") {
      EXPECT_TRUE(text.ends_with("</svg>\n")) << entry.path();
    }
    EXPECT_GT(text.size(), 150u) << entry.path();
    EXPECT_EQ(text.find("nan"), std::string::npos) << entry.path();
    EXPECT_EQ(text.find("inf"), std::string::npos) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 16u);
  refused("spb experiments --out " + write("file", "x") + "/below", "cannot create the folder");
  refused("spb", "spb: expected one of alpha");
}

TEST_F(LossCommand, ByColumnsScoresEachGroupAlone) {
  const std::string both = write(
      "both.csv", "method,truth,model,estimate\n\"a,b\",1e-6,m,2e-6\nc,1e-6,m,0\n\"a,b\",1e-5,m,1e-5\n");
  const std::string alone = write("alone.csv", "truth,estimate\n1e-6,2e-6\n1e-5,1e-5\n");
  const Json j = json("loss " + both + " --epsilon 1e-9 --by method,model");
  ASSERT_EQ(j["groups"].size(), 2u);
  EXPECT_EQ(j["groups"][0]["group"], Json({{"method", "a,b"}, {"model", "m"}}));
  EXPECT_EQ(j["groups"][0]["spb"], json("loss " + alone + " --epsilon 1e-9")["spb"]);
  EXPECT_EQ(j["groups"][1]["zeros"], 1);
  EXPECT_EQ(j["groups"][1]["itakura_saito"], "inf");
  EXPECT_EQ(j["n"], 3);
  const Outcome table = run("loss " + both + " --by method");
  EXPECT_NE(table.out.find("\na,b "), std::string::npos) << table.out;
  refused("loss " + both + " --by colour", "no column is called 'colour'");
  refused("loss " + both + " --by method --calibrate", "--by: goes with neither");
}

}  // namespace
}  // namespace deeptail
