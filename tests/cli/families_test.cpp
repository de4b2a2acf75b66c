// Models of every family, given to the program as their folders.
#include <fmt/format.h>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class Families : public CliTest {
 protected:
  // Eight tokens at six positions: 2^18 inputs.
  Families() {
    write(
        "d.json",
        R"({"format":"deeptail-distribution-1","name":"d","d_vocab":61,"positions":["t","t","t","t","t","t"],)"
        R"("tables":{"t":{"ids":[1,5,9,17,22,30,41,50],"probabilities":[0.125,0.125,0.125,0.125,0.125,0.125,)"
        R"(0.125,0.125]}}})");
  }
  static std::string folder(const std::string& name) {
    return std::string(DEEPTAIL_TEST_DATA) + "/families/" + name;
  }
  std::string pair(const std::string& name) const {
    return " --model '" + folder(name) + "' --dist '" + path("d.json") + "' ";
  }
};

TEST_F(Families, EveryCommandTakesThem) {
  for (const char* name :
       {"gpt2-b", "gpt_neo-a", "gpt_neox-b", "llama-b", "mistral-b", "qwen2-b", "qwen3-a"}) {
    const std::string family = std::string(name).substr(0, std::string(name).find('-'));
    EXPECT_EQ(json("model inspect '" + folder(name) + "'").at("family"), family);
    EXPECT_NE(run("model verify '" + folder(name) + "'").out.find("loads;"), std::string::npos) << name;
    const std::string counted = path(std::string(name) + ".json");
    ASSERT_EQ(run("truth --samples 2048 --quiet --out '" + counted + "'" + pair(name)).code, 0) << name;
    for (const char* method : {"mc", "tokensplit", "itgis", "mhis", "qld"}) {
      const Outcome outcome = run(fmt::format(
          "estimate --target 3 --method {} --budget 2^10 --seed 1 --quiet {}", method, pair(name)));
      EXPECT_TRUE(outcome.code == 0 || outcome.code == 4)  // 4: the budget ended before it was reached
          << name << " " << method << "\n"
          << outcome.err;
    }
  }
}

// Token 6 of 26 in 2^18 counted inputs; sampling them all again finds about as many.
TEST_F(Families, SplittingFindsWhatWasCounted) {
  ASSERT_EQ(run("truth --samples 262144 --quiet --out '" + path("t.json") + "'" + pair("qwen2-b")).code, 0);
  const double count = parse_json(read(path("t.json")), "t.json").at("counts").at("6").get<double>();
  const Json found = json("estimate --target 6 --budget 2^16 --seed 1 --quiet" + pair("qwen2-b"));
  EXPECT_LE(found.at("ci95").at(0).get<double>(), count / 262144.0);
  EXPECT_GE(found.at("ci95").at(1).get<double>(), count / 262144.0);
}

}  // namespace
}  // namespace deeptail
