// Answers over many seeds against a known probability: how far off their mean is, and how often their intervals hold it.
#pragma once

#include <atomic>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "deeptail/estimators.h"

namespace deeptail {

struct SeedTally {
  double n = 0.0, sum = 0.0, squares = 0.0, held = 0.0, below = 0.0, above = 0.0, zeros = 0.0, work = 0.0;
  double said = 0.0;  // sum of the variances that estimates say they have
  // Seeds whose estimate says itself that it is not one, since a pilot of its own, which nothing else depends on, spent the
  // budget. They are left out of the mean; their intervals must hold the truth as all others.
  double gave_up = 0.0;
  void operator+=(const SeedTally& o) {
    n += o.n, sum += o.sum, squares += o.squares, held += o.held;
    below += o.below, above += o.above, zeros += o.zeros, work += o.work;
    said += o.said, gave_up += o.gave_up;
  }
  static constexpr double kRounding = 1e-6;  // of fp32 logits, where an answer has no other error
  void add(const Estimate& e, double log_p) {
    const double ratio = std::exp(e.log_p - log_p);
    const bool is_below = log_p<e.log_low - kRounding, is_above = log_p> e.log_high + kRounding;
    *this += {.n = 1.0,
              .sum = ratio,
              .squares = ratio * ratio,
              .held = is_below || is_above ? 0.0 : 1.0,
              .below = is_below ? 1.0 : 0.0,
              .above = is_above ? 1.0 : 0.0,
              .zeros = std::isinf(e.log_p) ? 1.0 : 0.0,
              .work = e.cost.forward_equivalents,
              .said = ratio * ratio * said_variance(e),
              .gave_up = e.status == Status::kBudgetSpent ? 1.0 : 0.0};
  }
  static double said_variance(const Estimate& e) {
    for (const auto& [name, value] : e.diagnostics)
      if (name == "relative_sd") return value * value;
    return 0.0;
  }
  double answers() const { return n - gave_up; }
  double mean() const { return sum / answers(); }
  double variance() const { return std::max(0.0, squares / answers() - mean() * mean()); }
  double error() const { return std::sqrt(variance() / answers()); }
  double z() const {
    return error() > 0.0 && std::abs(mean() - 1.0) > kRounding ? (mean() - 1.0) / error() : 0.0;
  }
  double coverage() const { return held / n; }
  static constexpr const char* kHeader = "seeds,mean,error,z,sd,said_sd,held,below,above,zeros,gave_up,work";
  std::string csv() const {
    return fmt::format("{:.0f},{:.5f},{:.5f},{:.2f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.0f}",
                       n, mean(), error(), z(), std::sqrt(variance()), std::sqrt(said / answers()),
                       coverage(), below / n, above / n, zeros / n, gave_up / n, work / n);
  }
};

// What a run found, by question, for another run to add: the question, then the tally's numbers, all separated by tabs.
inline void write_tally(std::ostream& out, const std::string& question, const SeedTally& t) {
  out << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", question, t.n, t.sum, t.squares, t.held,
                     t.below, t.above, t.zeros, t.work, t.said, t.gave_up);
}
inline std::map<std::string, SeedTally> read_tallies(const std::vector<std::string>& files) {
  std::map<std::string, SeedTally> out;
  for (const std::string& file : files) {
    std::ifstream in(file);
    if (!in) throw InputError("{}: cannot be read", file);
    for (std::string line; std::getline(in, line);) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string::npos) throw InputError("{}: expected tabs in \"{}\"", file, line);
      SeedTally t;
      std::istringstream(line.substr(tab)) >> t.n >> t.sum >> t.squares >> t.held >> t.below >> t.above >>
          t.zeros >> t.work >> t.said >> t.gave_up;
      out[line.substr(0, tab)] += t;
    }
  }
  return out;
}

struct SeedOptions {
  std::uint64_t first = 0, seeds = 2000;
  std::size_t threads = 0;
  double seconds = 0.0;
  std::string only, out;
  std::vector<std::string> with;  // files that earlier runs of other seeds wrote
};

inline SeedOptions seed_options(int argc, char** argv, SeedOptions o = {}) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--seeds")
      o.seeds = std::stoull(value);
    else if (key == "--first")
      o.first = std::stoull(value);
    else if (key == "--threads")
      o.threads = std::stoull(value);
    else if (key == "--seconds")
      o.seconds = std::stod(value);
    else if (key == "--only")
      o.only = value;
    else if (key == "--out")
      o.out = value;
    else if (key == "--with")
      o.with.push_back(value);
    else
      throw InputError("{}: expected --first, --seeds, --threads, --seconds, --only, --out or --with", key);
  }
  if (o.threads == 0) o.threads = std::max(1u, std::thread::hardware_concurrency());
  return o;
}

// body(i, pool) for every i < n, each thread with a pool of its own; a thread ends when body says false.
inline void in_parallel(std::size_t n, std::size_t threads,
                        const std::function<bool(std::size_t, ThreadPool&)>& body) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> workers;
  for (std::size_t w = 0; w < threads; ++w)
    workers.emplace_back([&] {
      ThreadPool pool(1);
      for (std::size_t i = next++; i < n; i = next++)
        if (!body(i, pool)) return;
    });
  for (std::thread& worker : workers) worker.join();
}

}  // namespace deeptail
