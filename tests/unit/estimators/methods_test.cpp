#include "deeptail/methods.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "deeptail/ga_amls.h"
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
    EXPECT_EQ(method.row, &method_row(name));
  }
}

TEST(Methods, WrongSettingsAreRefused) {
  refused("mc", {"particles", "5", "suite.toml: line 3: particles"},
          "suite.toml: line 3: particles: method mc has no setting \"particles\"; it has budget");
  refused("mc", {"budget", "many", "--budget"}, "--budget: expected a whole number");
  refused("ga-amls", {"prior", "cauchy", "--prior"},
          "--prior: expected student_t, student_t_matched, gaussian or conditioned, found \"cauchy\"");
  refused("tokensplit", {"taper", "wide", "--taper"}, "--taper: expected a number from 1, found \"wide\"");
  refused("magic", {"a", "b", "c"},
          "method magic: expected one of tokensplit, all-tokens, auto, payoff, static, trajectory, forecast, "
          "ga-amls");
}

TEST(Methods, SameAsTheFunctions) {
  ThreadPool pool(2);
  const Distribution dist = shipped("hex");
  const Transformer& model = dt_1l();
  const Target target({69}, model.head());
  const Estimate direct = mc(model, dist, target, {.budget = 500, .seed = 7}, pool);
  const TokenTables law(dist);
  const NextToken event(target);
  const Estimate named = run_method(make_method("mc", {{"budget", "500", ""}}), {model, law, event}, 7, pool);
  EXPECT_EQ(named.log_p, direct.log_p);
  EXPECT_EQ(named.seed, 7u);

  const Activations cloud = capture(model, dist, {.count = 500, .seed = 3}, pool);
  Question of_cloud(model.head(), cloud, event);
  const Cost cost = of_cloud.capture_cost = capture_cost(model.config(), law, 500, 1.0);
  const GaAmlsConfig config = [] {
    GaAmlsConfig c{.prior = GaPrior::kGaussian, .n_particles = 50, .seed = 9};
    c.kernel.moves = 5;
    c.kernel.burn_in = 3;
    return c;
  }();
  const Estimate ga = ga_amls(model.head(), cloud, target, config, pool);
  const Estimate by_name = run_method(
      make_method("ga-amls", {{"prior", "gaussian", ""}, {"particles", "50", ""}, {"moves", "5", ""}}),
      of_cloud, 9, pool);
  EXPECT_EQ(by_name.log_p, ga.log_p);
  EXPECT_EQ(by_name.cost.forward, ga.cost.forward + 500);
  EXPECT_NEAR(by_name.cost.forward_equivalents, 500.0 * by_name.cost.flops / cost.flops, 1e-6);
}

// Every key that a method knows has a value, those that depend on the input included.
TEST(Methods, AnEstimateTellsAllSettings) {
  ThreadPool pool(2);
  const Distribution dist = shipped("hex");
  const Transformer& model = dt_1l();
  const TokenTables law(dist);
  const NextToken event(Target({69}, model.head()));
  const Question question(model, law, event);
  for (const std::string& name : method_names()) {
    const Method method = make_method(name, {});
    ASSERT_EQ(method.values.size(), method.row->settings.size()) << name;
    for (std::size_t i = 0; i < method.values.size(); ++i)
      EXPECT_EQ(method.values[i].first, method.row->settings[i]->key) << name;
  }
  const Method mc = make_method("mc", {{"budget", "2^9", ""}});
  EXPECT_EQ(run_method(mc, question, 1, pool).settings, (SettingValues{{"budget", std::uint64_t{512}}}));
  const Method itgis = make_method("itgis", {{"budget", "512", ""}});
  EXPECT_EQ(run_method(itgis, question, 1, pool).settings,
            (SettingValues{{"budget", std::uint64_t{512}}, {"temperature", 1.0}}));
  SettingValues of_tokensplit = make_method("tokensplit", {{"taper", "4", ""}}).values;
  make_method("tokensplit", {}).settle(question, of_tokensplit);
  EXPECT_EQ(of_tokensplit[0].second,
            SettingValue(static_cast<std::uint64_t>(tokensplit_budget(model.config(), dist))));
  EXPECT_EQ(of_tokensplit[3], (std::pair<std::string, SettingValue>("particles", {})));
  const Activations cloud = capture(model, dist, {.count = 600, .seed = 3}, pool);
  const Estimate gld = run_method(make_method("gld", {}), {model.head(), cloud, event}, 1, pool);
  EXPECT_EQ(gld.settings, (SettingValues{{"calibration", std::uint64_t{600}}}));
  EXPECT_EQ(gld.event, "says 69");
}

TEST(Methods, WhatIsTooSmallToHaveBeenCheckedSaysSo) {
  ThreadPool pool(1);
  const TokenTables law(shipped("hex"));
  const NextToken event(Target({69}, dt_1l().head()));
  const auto warnings_at = [&](double p) {
    const Method method{.run = [&](const Question&, std::uint64_t, ThreadPool&, const Watch&) {
      return Estimate{.log_p = std::log(p)};
    }};
    return run_method(method, {dt_1l(), law, event}, 1, pool).warnings;
  };
  EXPECT_TRUE(warnings_at(1.01e-12).empty());
  EXPECT_TRUE(warnings_at(0.0).empty());
  ASSERT_EQ(warnings_at(0.99e-12).size(), 1u);
  EXPECT_EQ(warnings_at(0.99e-12)[0],
            "p is below 1e-12: nothing so small has been checked here against a count or a closed form");
}

// The published burn-in at the published budget; in proportion below it; as given where it is given.
TEST(Methods, MhisBurnsInWithinItsBudget) {
  const TokenTables law(shipped("hex"));
  const NextToken event(Target({69}, dt_1l().head()));
  const auto work = [&](const std::vector<Setting>& settings) {
    return make_method("mhis", settings).work({dt_1l(), law, event});
  };
  EXPECT_EQ(work({}), (1u << 16) + 32u * 1024u);
  EXPECT_EQ(work({{"budget", "2^18", ""}}), (1u << 18) + 32u * 1024u);
  EXPECT_EQ(work({{"budget", "1024", ""}}), 1024u + 32u * 16u);
  EXPECT_EQ(work({{"budget", "1024", ""}, {"burn_in", "64", ""}}), 1024u + 32u * 64u);
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
  const auto answer = [&](const Method& method, const std::vector<TokenId>& ids) {
    return run_method(method, {head, cloud, NextToken(Target(ids, head))}, 1, pool);
  };
  for (const char* name : {"ga-amls", "qld", "qld-arc", "gld"}) {
    const Method method = std::string(name) == "ga-amls"
                              ? make_method(name, {{"particles", "50", ""}, {"moves", "5", ""}})
                              : make_method(name, {});
    const Estimate never = answer(method, {16});
    EXPECT_EQ(never.log_high, -std::numeric_limits<double>::infinity()) << name;
    EXPECT_EQ(never.target, std::vector<TokenId>{16}) << name;
    if (method.one_token) continue;
    const Estimate one = answer(method, {10});
    const Estimate all = answer(method, {10, 16, 300});
    EXPECT_EQ(one.log_p, all.log_p) << name;
    EXPECT_EQ(one.target, std::vector<TokenId>{10}) << name;
  }
}

// One by one and many at once: the same answers, with the same things told, ties settled for both.
TEST(Ties, ManyAtOnceAreAnsweredAsOneIs) {
  ThreadPool pool(1);
  const Head head = with_twins();
  const Activations cloud = capture(dt_1l(), shipped("hex"), {.count = 600, .seed = 3}, pool);
  Method method = make_method("gld", {});
  std::vector<std::vector<TokenId>> asked;
  method.run_many = [&](std::span<const MethodTask> tasks, const Answers& answers, ThreadPool&,
                        const Watch&) {
    for (std::size_t i = tasks.size(); i-- > 0;) {
      asked.push_back(tasks[i].question.next_token()->ids());
      answers.on_estimate(i, method.run(tasks[i].question, tasks[i].seed, pool, {}));
    }
  };
  const NextToken events[] = {NextToken(Target({16}, head)), NextToken(Target({17}, head)),
                              NextToken(Target({10}, head))};
  std::vector<MethodTask> tasks;
  for (std::uint64_t i = 0; i < 3; ++i) {
    Question question(head, cloud, events[i]);
    question.capture_cost = {.forward = 600, .flops = 6e8, .seconds = 1.0};
    question.provenance = {.model = "twins"};
    tasks.push_back({question, i + 1});
  }
  std::map<std::size_t, Estimate> told;
  run_method_many(method, tasks, {.on_estimate = [&](std::size_t i, Estimate e) { told[i] = std::move(e); }},
                  pool);
  EXPECT_EQ(asked, (std::vector<std::vector<TokenId>>{{10, 16, 300}, {17}}));
  ASSERT_EQ(told.size(), 3u);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    Estimate alone = run_method(method, tasks[i].question, tasks[i].seed, pool);
    alone.cost.seconds = told[i].cost.seconds = 0.0;
    EXPECT_EQ(to_json(told[i]), to_json(alone)) << i;
  }
}

}  // namespace
}  // namespace deeptail
