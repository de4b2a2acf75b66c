// modes [--seeds N] [--budget B] [--families hex,late,..] [--threads T] [--weights] [--check]: tokensplit on
// problems with exact truths that are apt to lose modes. README.md says what they are and what the columns mean.
#include <fmt/core.h>
#include <fmt/os.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "answers.h"
#include "constructed.h"
#include "semi_synthetic.h"

namespace {

using namespace deeptail;
using namespace deeptail::modes;

constexpr const char* kUnfair = "needle";  // no method can be held to it

struct Options {
  Plan plan = {.config = {.budget = 1.9e6}};
  Bars bars = {};
  std::vector<std::string> families = {};
  std::string root = ".", csv = {};
  bool check = false, each = false;
};

Problems chosen_problems(const Options& options) {
  Problems out;
  std::set<std::string> known;
  const auto take = [&](Problems problems) {
    for (auto& problem : problems) {
      known.insert(problem->family());
      const bool wanted = options.families.empty() ||
                          std::ranges::count(options.families, problem->family()) > 0 ||
                          std::ranges::count(options.families, problem->name()) > 0;
      known.insert(problem->name());
      if (wanted) out.push_back(std::move(problem));
    }
  };
  if (!options.plan.weights) take(semi_synthetic_problems(options.root));
  take(constructed_problems());
  for (const std::string& family : options.families)
    if (!known.contains(family))
      throw InputError("family {}: not known; known are {}", family, fmt::join(known, ", "));
  return out;
}

void print_header() {
  fmt::print("{:<22} {:>8} {:>5} {:>7} {:>7} {:>7} {:>17} {:>6} {:>7} {:>8} {:>7} {:>7} {:>6}\n", "", "truth",
             "n", "in 2x", "< half", "covered", "mean p/truth", "rms", "recall", "evals", "seconds", "warned",
             "silent");
}

void print_row(const std::string& name, const std::string& truth, const Figures& f) {
  fmt::print(
      "{:<22} {:>8} {:>5} {:>7.3f} {:>7.3f} {:>7.3f} {:>8.3f} +- {:<5.3f} {:>6.3f} {:>7.3f} {:>8.2g} "
      "{:>7.2f} "
      "{:>7.3f} {:>6}\n",
      name, truth, f.n, f.within_two, f.below_half, f.covered, f.mean_ratio, f.error, f.rms_log10, f.recall,
      f.evaluations, f.seconds, f.warned, f.silent);
}

void write_csv(const std::string& path, const Problems& problems, std::span<const Answer> answers) {
  auto out = fmt::output_file(path);
  out.print("family,problem,truth,seed,ratio,low,high,evaluations,recall,unseen_share,warned\n");
  for (const Answer& a : answers) {
    const Problem& p = *problems[a.problem];
    out.print("{},{},{:.9g},{},{:.6g},{:.6g},{:.6g},{},{:.4f},{:.4g},{}\n", p.family(), p.name(), p.truth(),
              a.seed, a.ratio, a.low, a.high, a.evaluations, a.recall, a.unseen, a.warned ? 1 : 0);
  }
}

// Answers to problems that `wanted` takes.
template <class Wanted>
std::vector<Answer> part_of(const Problems& problems, const std::vector<Answer>& answers,
                            const Wanted& wanted) {
  std::vector<Answer> out;
  for (const Answer& a : answers)
    if (wanted(*problems[a.problem])) out.push_back(a);
  return out;
}

int run(const Options& options) {
  const Problems problems = chosen_problems(options);
  const std::vector<Answer> answers = run_problems(problems, options.plan);
  if (!options.csv.empty()) write_csv(options.csv, problems, answers);
  print_header();
  std::vector<std::string> families;
  for (const auto& problem : problems) {
    if (!std::ranges::count(families, problem->family())) families.push_back(problem->family());
    if (options.each)
      print_row(
          problem->name(), fmt::format("{:.2g}", problem->truth()),
          figures_of(part_of(problems, answers, [&](const Problem& p) { return &p == problem.get(); })));
  }
  for (const std::string& family : families)
    print_row(family, "",
              figures_of(part_of(problems, answers, [&](const Problem& p) { return p.family() == family; })));
  const Figures all =
      figures_of(part_of(problems, answers, [](const Problem& p) { return p.family() != kUnfair; }));
  print_row(fmt::format("all but {}", kUnfair), "", all);
  const std::vector<std::string> lines =
      options.check ? shortfalls(all, options.bars) : std::vector<std::string>{};
  for (const std::string& line : lines) fmt::print("{}\n", line);
  return lines.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("tokensplit on problems with exact truths that are apt to lose modes");
  Options o;
  TokensplitConfig& c = o.plan.config;
  app.add_option("--seeds", o.plan.n_seeds, "Estimates of each problem")->capture_default_str();
  app.add_option("--first-seed", o.plan.first_seed)->capture_default_str();
  app.add_option("--budget", c.budget, "Evaluations of the score")->capture_default_str();
  app.add_option("--families", o.families, "Families or single problems; all unless given")->delimiter(',');
  app.add_option("--threads", o.plan.threads, "0: one for each core")->capture_default_str();
  app.add_option("--root", o.root, "The source tree, for distributions and tables")->capture_default_str();
  app.add_option("--csv", o.csv, "File with every answer");
  app.add_flag("--weights", o.plan.weights,
               "Constructed families alone, as the next token of transformers with their structure");
  app.add_flag("--each", o.each, "A row for each problem");
  app.add_flag("--check", o.check, "Fail where the bars are not met, over all but " + std::string(kUnfair));
  app.add_option("--replicas", c.replicas)->capture_default_str();
  app.add_option("--survive-fraction", c.survive_fraction)->capture_default_str();
  app.add_option("--forgotten", c.forgotten)->capture_default_str();
  app.add_option("--taper", c.taper)->capture_default_str();
  app.add_option_function<std::string>(
         "--tilt", [&c](const std::string& word) { c.tilt = value_named<Tilting>(word).value(); })
      ->default_str("auto");
  app.add_option("--bar-within-two", o.bars.within_two)->capture_default_str();
  app.add_option("--bar-below-half", o.bars.below_half)->capture_default_str();
  app.add_option("--bar-least-covered", o.bars.least_covered)->capture_default_str();
  app.add_option("--bar-most-covered", o.bars.most_covered)->capture_default_str();
  app.add_option("--bar-recall", o.bars.recall)->capture_default_str();
  app.add_option("--bar-evaluations", o.bars.evaluations)->capture_default_str();
  app.add_option("--bar-silent", o.bars.silent)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const InputError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
