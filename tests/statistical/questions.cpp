// Every law, event and estimator on sampled texts against all texts of tiny models: means over many seeds, and how often the
// 95 % intervals hold the truth.
//
//     questions [--first 0] [--seeds 2000] [--threads 0] [--seconds 0] [--only TEXT] [--out FILE] [--with FILE]..
//
// Each seed is one answer to every question, at a small budget; questions about rare events get more, so that they do not
// rest on a handful of counts, of which no interval says exactly 95 %.
//
// Seeds are asked in blocks, of all questions in turn, so that a run that ends by its --seconds has asked all of them equally.
// --out keeps what was found, for a later run of other seeds to add (--with). Exit status 1 when a mean is off by more standard
// errors than all of them together reach with a chance of 1 %, or an interval holds the truth in less than 93 % of the seeds.
#include <cmath>
#include <mutex>

#include "core/statistics.h"
#include "core/stopwatch.h"
#include "deeptail/payoff.h"
#include "deeptail/trajectory.h"
#include "estimators/text_paths.h"
#include "statistical/many_seeds.h"
#include "statistical/tiny_questions.h"

namespace deeptail {
namespace {

struct Form {
  explicit Form(bool llama)
      : name(llama ? "llama" : "tl"),
        tiny(llama, llama ? 5 : 7),
        laws(tiny.model()),
        questions(tiny_questions(tiny.model(), llama ? 3.6 : 4.0, llama ? 4.0 : 16.0)) {}
  std::string name;
  TinyModel tiny;
  TinyLaws laws;
  std::vector<TinyQuestion> questions;
};

struct Asked {
  double budget;
  std::uint64_t seed;
};
using Ask =
    std::function<Estimate(const Form&, const TinyLaw&, const TinyQuestion&, const Asked&, ThreadPool&)>;
struct Estimator {
  std::string name;
  bool patterns_only, has_interval;
  double budget,
      rare_budget;  // the second where the event is rare: a handful of counts says nothing of an interval
  Ask ask;
};

ContinuationEvent with_nonsense(const ContinuationEvent& event) {
  std::vector<double> chances;
  for (std::size_t s = 0; s < event.chances().size(); ++s)
    chances.push_back(0.003 + 0.11 * static_cast<double>((7 * s + 3) % 9));
  return event.with_chances(chances);
}

Estimate payoff_of(const Form& f, const TinyLaw& l, const TinyQuestion& q, PayoffLevels levels,
                   const Asked& a, ThreadPool& pool) {
  return payoff(f.tiny.model(), *l.law, *q.pattern(), {.budget = a.budget, .levels = levels, .seed = a.seed},
                pool);
}

Estimate nonsense_payoff(const Form& f, const TinyLaw& l, const TinyQuestion& q, const Asked& a,
                         ThreadPool& pool) {
  const auto n = static_cast<std::size_t>(a.budget);
  const ContinuationPayoff paying(with_nonsense(*q.pattern()), 2);
  const auto scorer = paying.scorer(f.tiny.model(), *l.law, {}, pool);
  const Inputs inputs = sample_inputs(*l.law, a.seed, 0, n, pool);
  std::vector<double> scores(n);
  scorer->scores({inputs.batch(), sample_numbers(paying, *l.law, a.seed, 0, n)}, scores);
  return {.log_p = log_mean_payoff(scorer->log_payoffs(), n)};
}

Estimate nonsense_trajectory(const Form& f, const TinyLaw& l, const TinyQuestion& q, const Asked& a,
                             ThreadPool& pool) {
  const auto n = static_cast<std::size_t>(a.budget);
  const ContinuationEvent event = with_nonsense(*q.pattern());
  TextPaths paths(f.tiny.model(), *l.law, event, n, pool, [](const Work&) { return true; });
  return {.log_p = run_trajectories(paths, {.n_paths = n, .killed = n / 10}, a.seed).log_p};
}

std::vector<Estimator> estimators() {
  return {
      {"payoff", true, true, 500, 2000,
       [](auto& f, auto& l, auto& q, const Asked& a, ThreadPool& pool) {
         return payoff_of(f, l, q, PayoffLevels::kNone, a, pool);
       }},
      {"payoff levels", true, true, 1000, 2000,
       [](auto& f, auto& l, auto& q, const Asked& a, ThreadPool& pool) {
         return payoff_of(f, l, q, PayoffLevels::kAlways, a, pool);
       }},
      {"static", false, true, 4000, 4000,
       [](auto& f, auto& l, auto& q, const Asked& a, ThreadPool& pool) {
         return static_split(f.tiny.model(), *l.law, *q.event,
                             {.budget = a.budget, .seed = a.seed, .first_draw = 64}, pool);
       }},
      {"trajectory", true, true, 1000, 4000,
       [](auto& f, auto& l, auto& q, const Asked& a, ThreadPool& pool) {
         return trajectory(f.tiny.model(), *l.law, *q.pattern(), {.budget = a.budget, .seed = a.seed}, pool);
       }},
      {"mc", false, true, 1000, 4000,
       [](auto& f, auto& l, auto& q, const Asked& a, ThreadPool& pool) {
         return mc(f.tiny.model(), *l.law, *q.event,
                   {.budget = static_cast<std::uint64_t>(a.budget), .seed = a.seed}, pool);
       }},
      {"nonsense payoff", true, false, 200, 200, nonsense_payoff},
      {"nonsense static", true, true, 2000, 4000,
       [](auto& f, auto& l, auto& q, const Asked& a, ThreadPool& pool) {
         return tokensplit(f.tiny.model(), *l.law, with_nonsense(*q.pattern()),
                           {.budget = a.budget, .seed = a.seed, .first_draw = 64, .moves = 16}, pool);
       }},
      {"nonsense trajectory", true, false, 64, 64, nonsense_trajectory},
  };
}

struct Cell {
  const Form* form;
  const TinyLaw* law;
  const TinyQuestion* question;
  const Estimator* estimator;
  double p;
  SeedTally tally = {};
  double budget() const {
    constexpr double kRare = 0.02;
    return p < kRare ? estimator->rare_budget : estimator->budget;
  }
  std::string name() const {
    return fmt::format("{},{},{},{}", form->name, law->name, question->name, estimator->name);
  }
};

SeedTally ask_block(const Cell& cell, std::uint64_t first, std::uint64_t n, ThreadPool& pool) {
  SeedTally t;
  for (std::uint64_t seed = first; seed < first + n; ++seed) {
    const Estimate e = cell.estimator->ask(*cell.form, *cell.law, *cell.question,
                                           {cell.budget(), derived_seed(1789, seed)}, pool);
    t.add(e, std::log(cell.p));
  }
  return t;
}

// [laws][questions]
std::vector<std::vector<double>> truths_of(const Form& form, std::size_t threads) {
  std::map<std::vector<TokenId>, std::vector<double>> known;
  for (const TinyLaw& law : form.laws.all())
    for (const auto& [tokens, p] : law.inputs) known[tokens];
  std::vector<std::pair<const std::vector<TokenId>, std::vector<double>>*> each;
  for (auto& one : known) each.push_back(&one);
  in_parallel(each.size(), threads, [&](std::size_t i, ThreadPool&) {
    each[i]->second = TinyAnswers(form.tiny.model(), form.questions)(each[i]->first);
    return true;
  });
  std::vector<std::vector<double>> out;
  for (const TinyLaw& law : form.laws.all()) {
    std::vector<double>& sums = out.emplace_back(form.questions.size());
    for (const auto& [tokens, p] : law.inputs)
      for (std::size_t q = 0; q < sums.size(); ++q) sums[q] += p * known[tokens][q];
  }
  return out;
}

// By estimator: how means and intervals did, over all laws and events of both models.
bool summarise(const std::vector<Cell>& cells, const std::vector<Estimator>& all) {
  bool good = true;
  double all_means = 0.0, all_far = 0.0, farthest = 0.0;
  fmt::print("\n{:20} {:>6} {:>7} {:>6} {:>8} {:>6} {:>6} {:>6} {:>6}\n", "estimator", "cells", "z > 3",
             "worst", "coverage", "least", "most", "< 93", "> 97");
  for (const Estimator& e : all) {
    double n = 0.0, far = 0.0, worst = 0.0, sum = 0.0, least = 1.0, most = 0.0, low = 0.0, high = 0.0;
    for (const Cell& c : cells) {
      if (c.estimator != &e || c.tally.answers() < 2.0) continue;
      n += 1.0;
      far += std::abs(c.tally.z()) > 3.0;
      if (std::abs(c.tally.z()) > std::abs(worst)) worst = c.tally.z();
      const double coverage = c.tally.coverage();
      sum += coverage;
      least = std::min(least, coverage);
      most = std::max(most, coverage);
      low += coverage < 0.93;
      high += coverage > 0.97;
    }
    if (n == 0.0) continue;
    fmt::print("{:20} {:6.0f} {:7.0f} {:6.1f}", e.name, n, far, worst);
    if (e.has_interval)
      fmt::print(" {:8.4f} {:6.3f} {:6.3f} {:6.0f} {:6.0f}", sum / n, least, most, low, high);
    fmt::print("\n");
    all_means += n, all_far += far;
    farthest = std::max(farthest, std::abs(worst));
    good = good && (!e.has_interval || low == 0.0);
  }
  // Were they normal, so many would be beyond 3 by chance, and any beyond `most` in one run of a hundred (Bonferroni).
  const double most = normal_upper_quantile(0.005 / std::max(1.0, all_means));
  fmt::print(
      "{:.0f} means, {:.0f} beyond 3 standard errors ({:.1f} by chance), the farthest at {:.2f} (limit "
      "{:.2f})\n",
      all_means, all_far, 2.0 * normal_tail(3.0) * all_means, farthest, most);
  return good && farthest < most;
}

int run(const SeedOptions& o) {
  const std::vector<Estimator> all = estimators();
  std::vector<std::unique_ptr<Form>> forms;
  std::vector<Cell> cells;
  for (const bool llama : {false, true}) {
    const Form& form = *forms.emplace_back(std::make_unique<Form>(llama));
    const auto truths = truths_of(form, o.threads);
    for (std::size_t l = 0; l < truths.size(); ++l)
      for (std::size_t q = 0; q < form.questions.size(); ++q)
        for (const Estimator& e : all) {
          const TinyQuestion& question = form.questions[q];
          if (e.patterns_only && question.pattern() == nullptr) continue;
          constexpr double kLeastForNonsense = 2e-3;  // below, nonsense finds nothing in most seeds
          if (truths[l][q] < (e.name.starts_with("nonsense") ? kLeastForNonsense : 1e-12)) continue;
          cells.push_back({&form, &form.laws.all()[l], &question, &e, truths[l][q]});
          if ((cells.back().name() + ",").find(o.only) == std::string::npos) cells.pop_back();
        }
  }
  const Stopwatch watch;
  constexpr std::uint64_t kBlock = 20;
  const std::uint64_t blocks = (o.seeds + kBlock - 1) / kBlock;
  std::mutex guard;
  in_parallel(cells.size() * blocks, o.threads, [&](std::size_t i, ThreadPool& pool) {
    if (o.seconds > 0.0 && watch.seconds() > o.seconds) return false;
    Cell& cell = cells[i % cells.size()];
    const std::uint64_t first = i / cells.size() * kBlock;
    const std::uint64_t n = std::min(kBlock, o.seeds - first);
    const SeedTally found = ask_block(cell, o.first + first, n, pool);
    const std::lock_guard lock(guard);
    cell.tally += found;
    return true;
  });
  std::ofstream out;
  if (!o.out.empty()) out.open(o.out);
  const auto earlier = read_tallies(o.with);
  fmt::print("form,law,event,estimator,p,{}\n", SeedTally::kHeader);
  for (Cell& c : cells) {
    if (c.tally.n > 0.0 && out.is_open()) write_tally(out, c.name(), c.tally);
    if (const auto found = earlier.find(c.name()); found != earlier.end()) c.tally += found->second;
    if (c.tally.n > 0.0) fmt::print("{},{:.4e},{}\n", c.name(), c.p, c.tally.csv());
  }
  const bool good = summarise(cells, all);
  fmt::print("{:.0f} s\n", watch.seconds());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace deeptail

int main(int argc, char** argv) {
  try {
    return deeptail::run(deeptail::seed_options(argc, argv));
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
