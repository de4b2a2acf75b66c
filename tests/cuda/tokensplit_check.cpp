// tokensplit on the GPU against the CPU and against the truth, pair by pair, with rates.
//   cuda_tokensplit_check [--models dt-1l,..] [--dists hex,..] [--inputs N] [--particles N] [--steps N]
//                         [--targets N] [--cpu N] [--accuracy N] [--band 1e-7,1e-5] [--csv FILE]
//                         [--budget B] [--seed S] [--at-once N] [--tilt auto]
//                         [--part K,N --least-count C | --tokens 1,2,..] [--seeds N]
//   margins    of N inputs for 8 targets: largest difference from the CPU; the same in any batch
//   particles  populations moved on both with the same random numbers, under the law itself, with rare tokens
//              raised, and with tokens planted (particles_check.h): share that is identical; on the GPU the
//              same alone and beside others whose laws come and go
//   screen     populations that climb to margin 0 (screen_check.h): largest error of the fp16 margins of
//              proposals, share left open, decisions that exact margins do not explain
//   targets    N at once at default settings: targets per second; --cpu: so many of them here on 2 threads
//   accuracy   N targets of the band, spread over log q, against truth/: error, coverage; with --part a part of all of
//              them, with --tokens these
// 0 leaves a part out. Fails when margins differ by 1e-3 (rough ones, of a scan, by 0.08) or between batches,
// when less than 99% of the particles are identical or company changes one, when an fp16 margin is off by half
// of what the screen allows for or a decision is another, when something throws, or, at the default budget,
// when the accuracy misses its bars: rms log10 error 0.15 on a pair, and of 8 pairs or more 0.08 on average
// and 90% of the intervals covering.
#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>

#include "check_settings.h"
#include "compute_cuda/truth_engine.h"
#include "deeptail/report.h"
#include "estimators/tokensplit/on_cuda.h"
#include "particles_check.h"
#include "screen_check.h"

namespace {

using namespace deeptail;

// --- parts; each returns the number of failures ---

// Rough margins: how far from the exact ones, and whether those of a piece depend on another one.
int check_rough_margins(ParticleDevice& device, TokenId target, std::span<const std::uint32_t> cells,
                        std::span<const Margin> exact, std::size_t length) {
  const std::size_t n = exact.size(), few = std::min<std::size_t>(37, n);
  std::vector<Margin> alone(n), beside(n), others(few);
  const ScorePiece whole{target, cells, alone};
  device.score(0, {&whole, 1}, true);
  const ScorePiece both[] = {{target, cells.first(few * length), others}, {target, cells, beside}};
  device.score(1, both, true);
  double worst = 0.0;
  std::size_t differ = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double error = std::abs(static_cast<double>(alone[i].value) - static_cast<double>(exact[i].value));
    worst = std::isnan(error) ? 1e30 : std::max(worst, error);
    differ += alone[i].value != beside[i].value;
  }
  fmt::print("  rough margins: largest difference {:.2e}, differ in company {}\n", worst, differ);
  return (worst > static_cast<double>(cuda::kSecondLook)) + (differ > 0);
}

int check_margins(const Settings& s, const Asked& asked, ThreadPool& pool) {
  const std::size_t n = s.count("--inputs"), length = asked.dist.length();
  const std::size_t d = asked.model.config().d_model;
  if (n == 0) return 0;
  std::vector<TokenId> tokens(n * length);
  sample_range(asked.dist, 5, 0, pool, tokens);
  AlignedVector<float> resid(n * d);
  final_residuals(asked.model.transformer, {tokens, length}, pool, {resid.data(), d});
  const auto device = make_cuda_particles(asked.model.transformer, asked.dist);
  std::vector<std::uint32_t> cells(tokens.size());
  device->encode(tokens, cells);
  double worst = 0.0, squares = 0.0;
  std::size_t others = 0, between_batches = 0, pairs = 0;
  std::vector<Margin> cpu(n), gpu(n), again(n);
  const std::vector<GridTarget> targets = some_targets(s, asked, 8, pool);
  for (const GridTarget& chosen : targets) {
    margins(asked.model.head(), Target({chosen.token}, asked.model.head()), n, {resid.data(), d}, pool, cpu);
    const ScorePiece whole{chosen.token, cells, gpu};
    device->score(0, {&whole, 1}, false);
    // The last third first, on the other lane.
    const std::size_t cut = n - n / 3;
    const auto all = std::span<const std::uint32_t>(cells);
    const ScorePiece parts[] = {{chosen.token, all.subspan(cut * length), std::span(again).subspan(cut)},
                                {chosen.token, all.first(cut * length), std::span(again).first(cut)}};
    device->score(1, parts, false);
    for (std::size_t i = 0; i < n; ++i, ++pairs) {
      const double error = std::abs(static_cast<double>(gpu[i].value) - static_cast<double>(cpu[i].value));
      worst = std::isnan(error) ? 1e30 : std::max(worst, error);
      squares += error * error;
      others += gpu[i].best_other != cpu[i].best_other;
      between_batches += gpu[i].value != again[i].value || gpu[i].best_other != again[i].best_other;
    }
  }
  fmt::print(
      "  margins: {} compared, largest difference {:.2e}, rms {:.2e}, other winner {}, differ between "
      "batches {}\n",
      pairs, worst, std::sqrt(squares / static_cast<double>(pairs)), others, between_batches);
  return (worst > 1e-3) + (between_batches > 0) +
         check_rough_margins(*device, targets.back().token, cells, gpu, length);
}

std::vector<Estimate> run_all(const Settings& s, const Asked& asked, const std::vector<GridTarget>& targets) {
  std::vector<TokensplitTask> tasks;
  for (const GridTarget& t : targets) tasks.push_back({Target({t.token}, asked.model.head()), s.config()});
  // All of them with the first seed, then with the next.
  for (std::size_t i = 0; i < tasks.size(); ++i)
    tasks[i].config.seed += i * s.count("--seeds") / tasks.size();
  std::vector<Estimate> out(tasks.size());
  tokensplit_many(asked.model.transformer, asked.dist, tasks,
                  {.on_estimate = [&](std::size_t i, Estimate e) { out[i] = std::move(e); }},
                  s.count("--at-once"));
  return out;
}

int measure_targets(const Settings& s, const Asked& asked, ThreadPool& pool) {
  if (s.count("--targets") == 0) return 0;
  std::vector<GridTarget> targets = some_targets(s, asked, s.count("--targets"), pool);
  const std::size_t distinct = targets.size();
  while (!targets.empty() && targets.size() < s.count("--targets"))
    targets.push_back(targets[targets.size() - distinct]);
  run_all(s, asked, {targets[0]});  // warm
  const Seconds clock;
  const auto estimates = run_all(s, asked, targets);
  const double spent = clock.spent();
  double proposals = 0.0, forwards = 0.0, busy = 0.0, reached = 0.0;
  for (const Estimate& e : estimates) {
    proposals += static_cast<double>(e.cost.score_evals);
    forwards += static_cast<double>(e.cost.forward);
    busy += e.cost.seconds;
    reached += std::isfinite(e.log_p);
  }
  const double n = static_cast<double>(targets.size());
  fmt::print(
      "  targets: {} ({} distinct) in {:.2f} s, {:.3f} targets/s; device busy {:.2f} s; {:.3g} proposals a "
      "target, {:.2f} "
      "million passes/s; {} reached\n",
      targets.size(), distinct, spent, n / spent, busy, proposals / n, (proposals + forwards) / spent * 1e-6,
      reached);
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, distinct); ++i) tokens.push_back(targets[i].token);
  fmt::print("    the first tokens: {}\n", fmt::join(tokens, ","));
  ThreadPool two(2);
  for (std::size_t i = 0; i < std::min(s.count("--cpu"), distinct); ++i) {
    const Estimate e = tokensplit(asked.model.transformer, asked.dist,
                                  Target({targets[i].token}, asked.model.head()), s.config(), two);
    fmt::print("    token {}: CPU (2 threads) {:.2f} s, log10 p {:.3f}; GPU {:.3f}; ratio of times {:.1f}\n",
               targets[i].token, e.cost.seconds, e.log_p / std::log(10.0),
               estimates[i].log_p / std::log(10.0), e.cost.seconds * n / spent);
  }
  return 0;
}

constexpr double kWorstRms = 0.15, kMeanRms = 0.08, kCoverage = 0.9;
constexpr std::size_t kPairs = 8;  // fewer pairs say little about averages

struct Accuracy {
  double squares = 0.0, error = 0.0, seconds = 0.0;
  std::size_t n = 0, covered = 0, covered_exactly = 0, zeros = 0;
  double rms() const { return std::sqrt(squares / static_cast<double>(n)); }
};

// 0 where modes were not counted.
double unseen_share(const Estimate& e) {
  for (const auto& [name, value] : e.diagnostics)
    if (name == "unseen_share") return value;
  return 0.0;
}

int measure_accuracy(const Settings& s, const Asked& asked, std::FILE* csv, std::vector<Accuracy>& all) {
  if (s.count("--accuracy") == 0) return 0;
  std::uint64_t samples = 0;
  auto targets = targets_of_truth(s, asked, s.count("--accuracy"), samples);
  if (targets.empty()) {
    fmt::print("  accuracy: no target in the band\n");
    return 1;
  }
  const std::size_t distinct = targets.size();
  while (targets.size() < distinct * s.count("--seeds"))
    targets.push_back(targets[targets.size() - distinct]);
  const Seconds clock;
  const auto estimates = run_all(s, asked, targets);
  Accuracy a{.seconds = clock.spent()};
  for (std::size_t i = 0; i < targets.size(); ++i, ++a.n) {
    const Estimate& e = estimates[i];
    const double count = static_cast<double>(targets[i].count), q = count / static_cast<double>(samples);
    const double low = std::exp(e.log_low), high = std::exp(e.log_high);
    const double error = std::log10(std::max(std::exp(e.log_p), 1e-12) / q);
    const bool exactly = low <= q && q <= high;
    RunItem item;
    item.truth_count = targets[i].count, item.truth_samples = samples;
    item.log_p = e.log_p, item.log_low = e.log_low, item.log_high = e.log_high;
    const bool covered = truth_against_interval(item) == 0;  // with the count's own noise
    a.squares += error * error;
    a.error += error;
    a.covered += covered;
    a.covered_exactly += exactly;
    a.zeros += !std::isfinite(e.log_p);
    if (csv != nullptr)
      fmt::print(csv,
                 "{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.4f},{},{},{},{},{:.6g},{:.4f},{},{:.4g},{}\n",
                 asked.model.name, asked.dist.name, targets[i].token, targets[i].count, q, std::exp(e.log_p),
                 low, high, error, static_cast<int>(exactly), static_cast<int>(covered), name_of(e.status),
                 e.cost.score_evals, e.cost.forward_equivalents, e.cost.seconds, e.warnings.size(),
                 unseen_share(e), e.seed);
  }
  if (csv != nullptr) std::fflush(csv);
  fmt::print(
      "  accuracy: {} targets, rms log10 error {:.3f}, mean {:+.3f}, covered {}/{} (without the truth's "
      "noise {}), "
      "zeros {}, {:.1f} s, {:.2f} targets/s\n",
      a.n, a.rms(), a.error / static_cast<double>(a.n), a.covered, a.n, a.covered_exactly, a.zeros, a.seconds,
      static_cast<double>(a.n) / a.seconds);
  all.push_back(a);
  return s.default_budget() && !(a.rms() <= kWorstRms);
}

int check_pair(const Settings& s, const std::string& model, const std::string& dist, ThreadPool& pool,
               std::FILE* csv, std::vector<Accuracy>& all) {
  fmt::print("{} {}\n", model, dist);
  int failures = 0;
  try {
    const LoadedModel loaded = load_model(model);
    const Asked asked{loaded, load_distribution(dist, loaded)};
    failures += check_margins(s, asked, pool);
    std::fflush(stdout);
    failures += check_particles(s, asked, pool);
    std::fflush(stdout);
    failures += check_screen(s, asked, pool);
    std::fflush(stdout);
    failures += measure_targets(s, asked, pool);
    std::fflush(stdout);
    failures += measure_accuracy(s, asked, csv, all);
  } catch (const std::exception& e) {
    fmt::print("  FAILED: {}\n", e.what());
    ++failures;
  }
  if (failures > 0) fmt::print("  {} FAILURES\n", failures);
  std::fflush(stdout);
  return failures;
}

// Prints it; the number of failures.
int check_summary(const Settings& s, const std::vector<Accuracy>& all) {
  if (all.empty()) return 0;
  Accuracy sum;
  double mean = 0.0, worst = 0.0;
  for (const Accuracy& a : all) {
    mean += a.rms() / static_cast<double>(all.size());
    worst = std::max(worst, a.rms());
    sum.n += a.n, sum.covered += a.covered, sum.zeros += a.zeros, sum.seconds += a.seconds;
  }
  const double coverage = static_cast<double>(sum.covered) / static_cast<double>(sum.n);
  fmt::print(
      "accuracy of {} pairs: rms log10 error {:.3f} on average, {:.3f} at worst; covered {}/{} = {:.3f}; "
      "zeros {}; {:.1f} s\n",
      all.size(), mean, worst, sum.covered, sum.n, coverage, sum.zeros, sum.seconds);
  if (!s.default_budget() || all.size() < kPairs) return 0;
  return !(mean <= kMeanRms) + !(coverage >= kCoverage);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings s(argc, argv);
    fmt::print("{}\n", cuda::device_name());
    ThreadPool pool;
    std::FILE* csv = s.given.at("--csv").empty() ? nullptr : std::fopen(s.given.at("--csv").c_str(), "w");
    if (csv != nullptr)
      fmt::print(csv,
                 "model,dist,token,count,q,p,low,high,log10_error,covered_exactly,covered,status,proposals,"
                 "forward_equivalents,device_seconds,warnings,unseen_share,seed\n");
    int failures = 0;
    std::vector<Accuracy> all;
    for (const std::string& model : s.list("--models"))
      for (const std::string& dist : s.list("--dists"))
        failures += check_pair(s, model, dist, pool, csv, all);
    if (csv != nullptr) std::fclose(csv);
    failures += check_summary(s, all);
    fmt::print("{} failures\n", failures);
    return failures > 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
