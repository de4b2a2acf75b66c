// Independent texts and what they pay.
#pragma once

#include <vector>

#include "deeptail/payoff.h"
#include "estimators/log_weights.h"
#include "events/pattern_scorer.h"

namespace deeptail {

// Texts of a law with one part, such as a pool of prompts, are spread evenly over it: text j of a replica has the j-th
// point of a sequence that fills the part's range, moved by a number of the replica's own.
class PayoffSample {
 public:
  // All must outlive it. Text i is of replica i % replicas.
  PayoffSample(const Transformer& model, const InputLaw& law, const ContinuationEvent& event,
               std::size_t branches, std::size_t replicas, std::uint64_t seed, ThreadPool& pool);

  void run(std::uint64_t first, std::size_t n);
  bool is_spread() const { return law_.facts().n_parts == 1; }

  struct Replica {
    WeightSums sums = {};
    std::uint64_t texts = 0;
    double log_mean() const;
    double relative_variance() const;  // of the mean
  };
  const std::vector<Replica>& replicas() const { return replicas_; }
  WeightSums all() const;
  const std::vector<Trigger>& triggers() const { return triggers_; }  // those that pay most
  const Work& work() const { return work_; }
  double branch_flops() const { return branch_flops_; }
  // Sums over texts of V and V^2 and of the variance that branches add, all over the largest V squared or so: only
  // ratios matter.
  struct Spread {
    double between = 0.0, branches = 0.0;  // of one text; over the mean squared
  };
  Spread spread() const;

 private:
  std::vector<std::uint64_t> parts_of(std::uint64_t first, std::size_t n) const;
  void keep_trigger(std::size_t i, std::uint64_t sample, double log_payoff);

  const InputLaw& law_;
  ContinuationPayoff event_;
  std::uint64_t seed_;
  ThreadPool& pool_;
  PatternScorer scorer_;
  std::vector<Replica> replicas_;
  std::vector<Trigger> triggers_;
  Inputs inputs_;
  Work work_;
  double branch_flops_ = 0.0;
  double log_branch_variance_ = kLogZero;  // sum over texts
};

}  // namespace deeptail
