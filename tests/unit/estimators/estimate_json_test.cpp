#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/json.h"
#include "deeptail/estimators.h"

namespace deeptail {
namespace {

TEST(EstimateJson, FieldsAndTheirOrder) {
  Estimate e{.method = "mc", .target = {3, 7}, .event = "says 3 or 7"};
  e.log_p = std::log(1e-4), e.log_low = std::log(5e-5), e.log_high = std::log(2e-4);
  e.seed = 9;
  e.settings = {{"budget", std::uint64_t{1} << 60}, {"taper", 8.0}, {"device", "cpu"}, {"moves", {}}};
  e.cost = {.forward = 100, .flops = 1e9, .seconds = 0.5};
  e.levels = {{.level = -1.0, .survive_fraction = 0.2, .moves = {.proposed = 10, .accepted = 3}}};
  e.warnings = {"careful"};
  e.diagnostics = {{"ridge", 0.25}};
  e.triggers = {{.sample = 4, .tokens = {0, 1}, .text = "ab\xff"}};
  e.provenance = {.model = "m", .dist = "d", .model_sha256 = "x", .dist_sha256 = "y"};
  const std::string text = to_json(e);
  const Json json = parse_json(text, "test");
  EXPECT_EQ(json.size(), 21u);
  std::size_t at = 0;
  for (const char* key :
       {"p",        "log10_p",     "ci95",     "status",    "guarantee", "method",      "model",
        "dist",     "target",      "event",    "seed",      "settings",  "cost",        "levels",
        "warnings", "diagnostics", "triggers", "positions", "replicas",  "certain_low", "provenance"}) {
    EXPECT_TRUE(json.contains(key)) << key;
    at = text.find(fmt::format("\"{}\":", key), at);
    ASSERT_NE(at, std::string::npos) << key;
  }
  EXPECT_NEAR(json.at("p").get<double>(), 1e-4, 1e-18);
  EXPECT_NEAR(json.at("log10_p").get<double>(), -4.0, 1e-12);
  EXPECT_NEAR(json.at("ci95").at(1).get<double>(), 2e-4, 1e-18);
  EXPECT_EQ(json.at("status"), "ok");
  EXPECT_EQ(json.at("guarantee"), "unbiased");
  EXPECT_EQ(json.at("target"), (std::vector<int>{3, 7}));
  EXPECT_EQ(json.at("event"), "says 3 or 7");
  EXPECT_EQ(json.at("settings").at("budget"), std::uint64_t{1} << 60);
  EXPECT_EQ(json.at("settings").at("taper"), 8.0);
  EXPECT_EQ(json.at("settings").at("device"), "cpu");
  EXPECT_TRUE(json.at("settings").at("moves").is_null());
  EXPECT_EQ(json.at("cost").at("forward"), 100);
  EXPECT_EQ(json.at("cost").size(), 7u);
  EXPECT_EQ(json.at("diagnostics").at("ridge"), 0.25);
  EXPECT_EQ(json.at("triggers").at(0).at("tokens"), (std::vector<int>{0, 1}));
}

TEST(EstimateJson, ZeroComesWithAnUpperBound) {
  constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
  const Estimate e{.log_p = kMinusInfinity,
                   .log_low = kMinusInfinity,
                   .log_high = std::log(1e-5),
                   .status = Status::kNotReachedUpperBound};
  const auto json = parse_json(to_json(e), "test");
  EXPECT_EQ(json.at("p"), 0.0);
  EXPECT_EQ(json.at("log10_p"), "-inf");
  EXPECT_EQ(json.at("ci95").at(0), 0.0);
  EXPECT_NEAR(json.at("ci95").at(1).get<double>(), 1e-5, 1e-18);
  EXPECT_EQ(json.at("status"), "not_reached_upper_bound");
}

}  // namespace
}  // namespace deeptail
