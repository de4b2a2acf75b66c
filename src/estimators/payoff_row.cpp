// payoff and auto as rows of the methods, and what methods on sampled texts have in common.
#include <algorithm>
#include <cmath>

#include "deeptail/payoff.h"
#include "estimators/method_list.h"

namespace deeptail {

void check_text_budget(double budget, std::string_view method) {
  if (budget != 0.0 && !(budget >= kFewestTexts && std::isfinite(budget)))
    throw InputError("budget {}: {} needs at least {} texts", budget, method, kFewestTexts);
}

std::uint64_t texts_of(double budget, const Question& q) {
  return static_cast<std::uint64_t>(budget > 0.0 ? budget : text_budget(q.model->config(), *q.law, *q.event));
}

Method pattern_method(double budget, decltype(Method::run) run) {
  return {.settle = [budget](const Question& q,
                             SettingValues& values) { set_value(values, kBudget, texts_of(budget, q)); },
          .needs_pattern = true,
          .unit = "texts",
          .work = [budget](const Question& q) { return texts_of(budget, q); },
          .run = std::move(run)};
}

namespace {

constexpr SettingRow kBranchCount{
    .key = "branches", .help = "Tries to finish the pattern in each text; default: as a pilot says"};
constexpr SettingRow kLevels{.key = "levels",
                             .help = "Split on what texts may pay, or take their mean",
                             .kind = SettingKind::kChoice,
                             .words = EnumNames<PayoffLevels>::kAll,
                             .usual = "auto"};
constexpr const SettingRow* kPayoffSettings[] = {&kBudget, &kReplicas, &kBranchCount, &kLevels};
constexpr const SettingRow* kAutoSettings[] = {&kBudget, &kReplicas};

Method make_payoff(SettingReader& s) {
  PayoffConfig config;
  s.take(kBudget, config.budget);
  s.take(kReplicas, config.replicas);
  s.take(kBranchCount, config.branches);
  s.take(kLevels, config.levels);
  config.validate();
  return pattern_method(
      config.budget, [config](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch& watch) {
        PayoffConfig c = config;
        c.seed = seed;
        return payoff(*q.model, *q.law, *q.event->continuation(), c, pool, watch);
      });
}

struct AutoConfig {
  double budget = 0.0;
  std::size_t replicas = 8;
};

// Is the event so frequent that plain sampling will do?
bool is_seen_often(const Question& q, std::uint64_t seed, ThreadPool& pool, Work& work) {
  constexpr std::size_t kDraws = 128, kHits = 13;
  constexpr std::uint64_t kAutoPart = 1 << 18;
  const std::uint64_t own = derived_seed(seed, kAutoPart);
  const auto scorer = q.event->scorer(*q.model, *q.law, {}, pool);
  const Inputs inputs = sample_inputs(*q.law, own, 0, kDraws, pool);
  const auto numbers = sample_numbers(*q.event, *q.law, own, 0, kDraws);
  std::vector<double> scores(kDraws);
  work += scorer->scores({inputs.batch(), numbers}, scores);
  return hits_among(scores, 0.0).hits >= kHits;
}

Estimate run_auto(const AutoConfig& config, const Question& q, std::uint64_t seed, ThreadPool& pool,
                  const Watch& watch) {
  const Transformer& model = *q.model;
  const TokensplitConfig split{.budget = config.budget, .replicas = config.replicas, .seed = seed};
  const ContinuationEvent* pattern = q.event->continuation();
  Work looked;
  Estimate e;
  if (q.event->answer_length() == 0) {
    e = tokensplit(model, *q.law, *q.event, split, pool, watch);
    e.chosen = "tokensplit";
  } else if (is_seen_often(q, seed, pool, looked)) {
    e = mc(model, *q.law, *q.event, {.budget = texts_of(config.budget, q), .seed = seed}, pool, watch);
    e.chosen = "mc";
  } else if (pattern != nullptr && !pattern->sampling().greedy) {
    e = payoff(model, *q.law, *pattern, {.budget = config.budget, .replicas = config.replicas, .seed = seed},
               pool, watch);
    e.chosen = "payoff";
  } else {
    e = static_split(model, *q.law, *q.event, split, pool, watch);
    e.chosen = "static";
  }
  e.method = "auto";
  e.cost.flops += looked.flops;
  e.cost.forward += looked.forwards;
  return e;
}

Method make_auto(SettingReader& s) {
  AutoConfig config;
  s.take(kBudget, config.budget);
  s.take(kReplicas, config.replicas);
  check_text_budget(config.budget, "auto");
  TokensplitConfig{.replicas = config.replicas}.validate();
  return {.enumerates = true,
          .unit = "texts",
          .work =
              [config](const Question& q) {
                if (q.event->answer_length() > 0) return texts_of(config.budget, q);
                return static_cast<std::uint64_t>(
                    config.budget > 0.0 ? config.budget : tokensplit_budget(q.model->config(), *q.law));
              },
          .run = [config](const Question& q, std::uint64_t seed, ThreadPool& pool,
                          const Watch& watch) { return run_auto(config, q, seed, pool, watch); }};
}

}  // namespace

constinit const MethodRow kPayoffRow{.name = "payoff",
                                     .help = "what sampled texts may still say, as a mean",
                                     .settings = kPayoffSettings,
                                     .colour = 8,
                                     .make = make_payoff};
constinit const MethodRow kAutoRow{.name = "auto",
                                   .help = "the one that suits the event",
                                   .settings = kAutoSettings,
                                   .colour = 10,
                                   .make = make_auto};

}  // namespace deeptail
