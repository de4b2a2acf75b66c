// deeptail selftest
#include <cmath>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "deeptail/closed_form.h"

namespace deeptail::cli {

namespace {

struct SelftestOptions {
  std::uint64_t seed = 1;
  bool json = false, quiet = false;
};

// Correct code fails one problem in this many standard deviations about once in 15 000.
constexpr double kMostDeviations = 4.0;

struct Verdict {
  double log_p, deviations;
  bool passed;
};

Verdict judge(const ClosedFormProblem& problem, const ReplicaSummary& summary) {
  const double sd = std::max(summary.relative_sd, summary.genealogy_relative_sd);
  const double deviations = (summary.log_p - problem.log_p) / sd;
  return {summary.log_p, deviations, std::abs(deviations) < kMostDeviations};
}

void run_selftest(const SelftestOptions& o) {
  ThreadPool pool;
  catch_interrupts();
  std::size_t failed = 0;
  OrderedJson rows = OrderedJson::array();
  const bool table = !o.json && !o.quiet;
  if (table) fmt::print("{:<46} {:>10} {:>10}  deviations\n", "event", "truth", "estimate");
  for (const ClosedFormProblem& problem : selftest_problems()) {
    const ClosedFormResult result = run_closed_form(problem, {.seed = o.seed}, pool);
    const Verdict verdict = judge(problem, result.summary);
    failed += !verdict.passed;
    rows.push_back({{"event", problem.name},
                    {"truth", std::exp(problem.log_p)},
                    {"estimate", std::exp(verdict.log_p)},
                    {"deviations", json_number(verdict.deviations)},
                    {"passed", verdict.passed}});
    if (table)
      fmt::print("{:<46} {:>10.3e} {:>10.3e}  {:+.2f}{}\n", problem.name, std::exp(problem.log_p),
                 std::exp(verdict.log_p), verdict.deviations, verdict.passed ? "" : "  FAILED");
    if (interrupted()) throw Stopped(kInterrupted, "interrupted");
  }
  if (o.json)
    print_json({{"passed", failed == 0}, {"events", rows}});
  else
    fmt::print("{}\n",
               failed == 0 ? "all agree with their closed forms" : fmt::format("{} disagree", failed));
  if (failed > 0) throw std::runtime_error("selftest: estimates disagree with closed-form probabilities");
}

}  // namespace

void add_selftest(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("selftest", "Splitting on events with known probabilities");
  const auto o = std::make_shared<SelftestOptions>();
  sub->add_option("--seed", o->seed, "Seed")->capture_default_str();
  sub->add_flag("--json", o->json, "Machine-readable output");
  sub->add_flag("--quiet", o->quiet, "Only the verdict");
  sub->callback([o] { run_selftest(*o); });
}

}  // namespace deeptail::cli
