// all-tokens as a row of the methods: targets of one model and law, answered by the same draws.
#include "deeptail/all_tokens.h"

#include <cmath>
#include <map>

#include "estimators/method_list.h"

namespace deeptail {

namespace {

constexpr SettingRow kAbove{.key = "above",
                            .help = "Tokens this likely or likelier are worked for",
                            .kind = SettingKind::kNumber,
                            .high = 1.0,
                            .usual = "1e-8"};
constexpr SettingRow kBelow{.key = "below",
                            .help = "Tokens this likely or less are worked for",
                            .kind = SettingKind::kNumber,
                            .high = 1.0,
                            .with_ends = true,
                            .usual = "1"};
constexpr const SettingRow* kAllTokensSettings[] = {&kBudget, &kAbove, &kBelow, &kDevice};

AllTokensAsked read_asked(SettingReader& s) {
  AllTokensAsked out;
  s.take(kBudget, out.config.budget);
  s.take(kAbove, out.config.above);
  s.take(kBelow, out.config.below);
  s.take(kDevice, out.device);
  out.config.validate();
  return out;
}

double budget_of(const AllTokensAsked& asked, const Question& q) {
  return asked.config.budget > 0.0 ? asked.config.budget
                                   : all_tokens_budget(q.model->config(), *q.tables(), asked.device);
}

// One target's, which bears its share of the work.
Estimate answer_of(const AllTokens& all, const AllTokensConfig& config, const Question& q, double share) {
  Estimate e = estimate_of(all, q.next_token()->ids().front());
  e.chosen = e.method;
  e.method = "all-tokens";
  e.seed = config.seed;
  e.cost = {.flops = share * all.cost.flops,
            .forward_equivalents = share * all.cost.forward_equivalents,
            .seconds = share * all.cost.seconds};
  const double p = std::exp(e.log_p);
  if (p > config.below || (p > 0.0 && p < config.above))
    e.warnings.push_back(
        fmt::format("outside the bounds from {:.3g} to {:.3g}: little of the work was for it", config.above,
                    config.below));
  if (all.stopped)
    e.warnings.push_back(fmt::format("ended after {:.3g} of {:.3g} forward passes",
                                     all.cost.forward_equivalents, config.budget));
  return e;
}

// All of one seed by the same draws. Whoever cannot be answered is told why.
void answer_all(const AllTokensAsked& asked, std::span<const MethodTask> tasks, const Answers& answers,
                ThreadPool& pool, const Watch& watch) {
  std::map<std::uint64_t, std::vector<std::size_t>> by_seed;
  for (std::size_t i = 0; i < tasks.size(); ++i) by_seed[tasks[i].seed].push_back(i);
  for (const auto& [seed, those] : by_seed) {
    const Question& first = tasks[those.front()].question;
    AllTokensConfig config = asked.config;
    config.seed = seed;
    config.budget = budget_of(asked, first);
    try {
      const AllTokens all = estimate_all(*first.model, *first.tables(), config, pool, watch, asked.device);
      const double share = 1.0 / static_cast<double>(those.size());
      for (const std::size_t i : those)
        answers.on_estimate(i, answer_of(all, config, tasks[i].question, share));
      if (all.stopped) return;
    } catch (const DeviceError&) {
      throw;  // nobody would be answered
    } catch (const InputError& e) {
      if (!answers.on_refusal) throw;
      for (const std::size_t i : those) answers.on_refusal(i, e.what());
    }
  }
}

Method make_all_tokens(SettingReader& s) {
  const AllTokensAsked asked = read_asked(s);
  const auto work = [asked](const Question& q) { return static_cast<std::uint64_t>(budget_of(asked, q)); };
  return {.settle = [work](const Question& q, SettingValues& values) { set_value(values, kBudget, work(q)); },
          .needs_tables = true,
          .needs_next_token = true,
          .one_token = true,
          .shares_draws = true,
          .device = asked.device,
          .unit = "forwards",
          .work = work,
          .run =
              [asked](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch& watch) {
                Estimate found;
                const MethodTask task{q, seed};
                answer_all(asked, {&task, 1},
                           {.on_estimate = [&](std::size_t, Estimate e) { found = std::move(e); }}, pool,
                           watch);
                return found;
              },
          .run_many = [asked](std::span<const MethodTask> tasks, const Answers& answers, ThreadPool& pool,
                              const Watch& watch) { answer_all(asked, tasks, answers, pool, watch); }};
}

}  // namespace

AllTokensAsked read_all_tokens(const std::vector<Setting>& settings) {
  SettingReader reader(kAllTokensRow, settings);
  return read_asked(reader);
}

constinit const MethodRow kAllTokensRow{.name = "all-tokens",
                                        .help = "tokens at once, by shared draws",
                                        .settings = kAllTokensSettings,
                                        .colour = 13,
                                        .make = make_all_tokens};

}  // namespace deeptail
