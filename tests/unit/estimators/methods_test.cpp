#include "deeptail/methods.h"

#include <gtest/gtest.h>

#include "estimators/ties.h"
#include "subject.h"

namespace deeptail {
namespace {

void refused(const std::string& method, const Setting& setting, const std::string& message) {
  try {
    make_method(method, {setting});
    FAIL() << message;
  } catch (const InputError& e) {
    EXPECT_EQ(std::string(e.what()).substr(0, message.size()), message);
  }
}

TEST(Methods, EveryOneIsMadeWithoutSettings) {
  EXPECT_EQ(method_names().front(), "tokensplit");
  for (const std::string& name : method_names()) {
    const Method method = make_method(name, {});
    EXPECT_EQ(method.name, name);
    EXPECT_FALSE(method.settings.empty());
  }
}

TEST(Methods, WrongSettingsAreRefused) {
  refused("mc", {"particles", "5", "suite.toml: line 3: particles"},
          "suite.toml: line 3: particles: method mc has no setting \"particles\"; it has budget");
  refused("mc", {"budget", "many", "--budget"}, "--budget: expected a whole number");
  refused("ga-amls", {"prior", "cauchy", "--prior"}, "--prior cauchy: expected student_t, student_t_matched");
  refused("tokensplit", {"taper", "wide", "--taper"}, "--taper: expected a number, found \"wide\"");
  refused("magic", {"a", "b", "c"}, "method magic: expected one of tokensplit, mc, itgis");
}

TEST(Methods, SameAsTheFunctions) {
  ThreadPool pool(2);
  const Distribution dist = shipped("hex");
  const Transformer& model = dt_1l();
  const Target target({69}, model.head());
  const Estimate direct = mc(model, dist, target, {.budget = 500, .seed = 7}, pool);
  const Estimate named = run_method(make_method("mc", {{"budget", "500", ""}}),
                                    {.model = &model, .dist = &dist}, target, 7, pool);
  EXPECT_EQ(named.log_p, direct.log_p);
  EXPECT_EQ(named.seed, 7u);

  const Activations cloud = capture(model, dist, {.count = 500, .seed = 3}, pool);
  const Cost cost = capture_cost(model.config(), dist, 500, 1.0);
  const GaAmlsConfig config = [] {
    GaAmlsConfig c{.prior = GaPrior::kGaussian, .n_particles = 50, .seed = 9};
    c.kernel.moves = 5;
    c.kernel.burn_in = 3;
    return c;
  }();
  const Estimate ga = ga_amls(model.head(), cloud, target, config, pool);
  const Estimate by_name = run_method(
      make_method("ga-amls", {{"prior", "gaussian", ""}, {"particles", "50", ""}, {"moves", "5", ""}}),
      {.head = &model.head(), .activations = &cloud, .capture_cost = cost}, target, 9, pool);
  EXPECT_EQ(by_name.log_p, ga.log_p);
  EXPECT_EQ(by_name.cost.forward, ga.cost.forward + 500);
  EXPECT_NEAR(by_name.cost.forward_equivalents, 500.0 * by_name.cost.flops / cost.flops, 1e-6);
}

// dt-1l's head with the column of token 16 in the places of 10 and 300, too.
Head with_twins() {
  const Head& head = dt_1l().head();
  const std::size_t d = head.d_model(), n = head.d_vocab();
  std::vector<float> values(d * n), bias(head.w_u.bias(), head.w_u.bias() + n);
  for (std::size_t row = 0; row < d; ++row)
    for (std::size_t k = 0; k < n; ++k) values[row * n + k] = head.w_u.at(row, k == 10 || k == 300 ? 16 : k);
  bias[10] = bias[300] = bias[16];
  return {head.ln_final, PackedMatrix(values, d, n, bias)};
}

TEST(Ties, GoToTheSmallestId) {
  using Ids = std::vector<TokenId>;
  const Head head = with_twins();
  const auto settled = [&](const Ids& ids) { return without_ties(head, Target(ids, head)); };
  EXPECT_EQ(settled({16}), Ids());
  EXPECT_EQ(settled({16, 17}), Ids({17}));
  EXPECT_EQ(settled({10}), Ids({10, 16, 300}));
  EXPECT_EQ(settled({10, 300}), Ids({10, 16, 300}));
  EXPECT_EQ(settled({17}), Ids({17}));
}

TEST(Ties, MethodsOnActivationsDoNotSeeThem) {
  ThreadPool pool(2);
  const Head head = with_twins();
  const Activations cloud = capture(dt_1l(), shipped("hex"), {.count = 600, .seed = 3}, pool);
  const MethodInput input{.head = &head, .activations = &cloud};
  for (const char* name : {"ga-amls", "qld", "qld-arc", "gld"}) {
    const Method method = std::string(name) == "ga-amls"
                              ? make_method(name, {{"particles", "50", ""}, {"moves", "5", ""}})
                              : make_method(name, {});
    const Estimate never = run_method(method, input, Target({16}, head), 1, pool);
    EXPECT_EQ(never.log_high, -std::numeric_limits<double>::infinity()) << name;
    EXPECT_EQ(never.target, std::vector<TokenId>{16}) << name;
    if (method.one_token) continue;
    const Estimate one = run_method(method, input, Target({10}, head), 1, pool);
    const Estimate all = run_method(method, input, Target({10, 16, 300}, head), 1, pool);
    EXPECT_EQ(one.log_p, all.log_p) << name;
    EXPECT_EQ(one.target, std::vector<TokenId>{10}) << name;
  }
}

}  // namespace
}  // namespace deeptail
