#include "deeptail/methods.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace deeptail
