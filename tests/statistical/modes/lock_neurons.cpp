#include "lock_neurons.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace deeptail::modes {

namespace {

// A score as a function of the sum of units.
struct Line {
  double slope = 0.0, constant = 0.0;
};

// Linear in the codes; positive where it is on, and at least 1/2 away from 0.
struct Switch {
  std::vector<double> codes;
  double constant;
};

// Neurons are added one row after the other: each new switch is off in all earlier rows, so what it adds is
// what its own row still misses.
class RowNeurons {
 public:
  explicit RowNeurons(const Problem& problem)
      : lock_(problem.lock()),
        width_(code_width(lock_)),
        k_(lock_.positions.size()),
        bound_(static_cast<double>(problem.context().bound())) {}

  std::vector<Neuron> neurons() {
    if (lock_.modes.size() > 1) check_pairs();
    add_none();
    for (std::size_t n = 1; n <= k_; ++n) {
      std::vector<std::size_t> modes(n, 0);
      if (lock_.modes.size() > 1 && n == 2) modes[1] = 1;  // one of each leads no further than one alone
      add(count(n), state(modes), lock_.modes.size() > 1 ? 0 : n - 1);
    }
    for (std::size_t m = 0; lock_.modes.size() > 1 && m < lock_.modes.size(); ++m)
      add(pair(m), state({m, m}), 2 * m + 1);
    return std::move(neurons_);
  }

 private:
  void check_pairs() const {
    for (std::size_t m = 0; m < lock_.modes.size(); ++m) {
      const Row &row = lock_.rows[k_ * m], &first = lock_.rows[0];
      if (k_ != 2 || row.slope != first.slope || row.threshold != first.threshold)
        throw std::invalid_argument("locks of several modes: expected pairs whose single tokens are alike");
    }
  }

  // Codes where the first tokens are those of these modes.
  std::vector<double> state(const std::vector<std::size_t>& modes) const {
    std::vector<double> codes(k_ * width_, 0.0);
    for (std::size_t p = 0; p < modes.size(); ++p)
      for (std::size_t i = 0; i < width_; ++i) codes[p * width_ + i] = code(modes[p], i);
    return codes;
  }
  // At least n tokens of modes.
  Switch count(std::size_t n) const {
    Switch s{std::vector<double>(k_ * width_, 0.0), 0.5 - static_cast<double>(n)};
    for (std::size_t p = 0; p < k_; ++p) s.codes[p * width_] = 1.0;
    return s;
  }
  // Two codes that are a mode's have a product of 2 width with them, and no others have more than that less 2.
  Switch pair(std::size_t mode) const {
    return {state({mode, mode}), 1.0 - 2.0 * static_cast<double>(width_)};
  }

  Line wanted(std::size_t row) const {
    const Row& r = lock_.rows[row];
    return {r.slope / kUnitsPerSd, -r.slope * (static_cast<double>(r.threshold) - 0.5) / kUnitsPerSd};
  }
  Line missing(const std::vector<double>& codes, std::size_t row) const {
    Line line = wanted(row);
    for (const Neuron& n : neurons_) {
      double value = n.constant;
      for (std::size_t i = 0; i < codes.size(); ++i) value += n.codes[i] * codes[i];
      if (value < 0.0) continue;  // units change no sign
      line.slope -= n.out * n.units;
      line.constant -= n.out * value;
    }
    return line;
  }

  // The last row: the sum, and a constant.
  void add_none() {
    const std::vector<double> none(k_ * width_, 0.0);
    const std::size_t row = lock_.rows.size() - 1;
    neurons_.push_back({1.0 / bound_, none, 2.0, wanted(row).slope * bound_});
    neurons_.push_back({0.0, none, 1.0, missing(none, row).constant});
  }
  void add(const Switch& s, const std::vector<double>& codes, std::size_t row) {
    const auto times = [&](double factor) {
      std::vector<double> out = s.codes;
      for (double& x : out) x *= factor;
      return out;
    };
    constexpr double kGate = 4.0, kStep = 2.0;
    const double slope = missing(codes, row).slope;
    if (std::abs(slope) > 1e-9)  // a sum that passes where the switch is on
      neurons_.push_back({1.0 / bound_, times(kGate), kGate * s.constant, slope * bound_});
    double on = s.constant;
    for (std::size_t i = 0; i < codes.size(); ++i) on += s.codes[i] * codes[i];
    const double step = missing(codes, row).constant;
    if (std::abs(step) > 1e-9)
      neurons_.push_back({0.0, times(kStep), kStep * s.constant, step / (kStep * on)});
  }

  const Lock& lock_;
  std::size_t width_, k_;
  double bound_;
  std::vector<Neuron> neurons_;
};

}  // namespace

std::size_t code_width(const Lock& lock) {
  return 1 + static_cast<std::size_t>(std::bit_width(lock.modes.size() - 1));
}

double code(std::size_t mode, std::size_t i) { return i == 0 || ((mode >> (i - 1)) & 1) != 0 ? 1.0 : -1.0; }

std::vector<Neuron> lock_neurons(const Problem& problem) {
  if (problem.lock().modes.empty()) throw std::invalid_argument("a lock that is not made of tokens");
  return RowNeurons(problem).neurons();
}

}  // namespace deeptail::modes
