#include "estimators/enumerate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/stopwatch.h"

namespace deeptail {

namespace {

constexpr std::size_t kInputsAtOnce = 4096;
// A scorer remembers something of every input.
constexpr std::size_t kBatchesOfAScorer = 16;

// The sum of two doubles that do not overlap: 106 bits. Each operation is right to 2^-102, so a sum of 2^40
// positive products is, rounded to a double, the nearest one or its neighbour.
struct Twofold {
  double high = 0.0, low = 0.0;
};

Twofold two_sum(double a, double b) {
  const double sum = a + b, from_b = sum - a;
  return {sum, (a - (sum - from_b)) + (b - from_b)};
}
Twofold operator+(const Twofold& a, const Twofold& b) {
  const Twofold high = two_sum(a.high, b.high), low = two_sum(a.low, b.low);
  const Twofold sum = two_sum(high.high, high.low + low.high);
  return two_sum(sum.high, sum.low + low.low);
}
Twofold operator*(const Twofold& a, const Twofold& b) {
  const double product = a.high * b.high, rest = std::fma(a.high, b.high, -product);
  return two_sum(product, rest + (a.high * b.low + a.low * b.high));
}
double log_of(const Twofold& x) { return std::log(x.high) + std::log1p(x.low / x.high); }

// What a table gives its tokens, exactly: 64 bits are two doubles.
std::vector<Twofold> probabilities(const TokenTable& table) {
  if (table.size() == 1) return {{1.0, 0.0}};
  std::vector<Twofold> out;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::uint64_t units = table.last_unit(i) - begin + 1;  // below 2^64, since others have some
    begin = table.last_unit(i) + 1;
    const std::uint64_t high = units >> 32 << 32;
    out.push_back(two_sum(std::ldexp(static_cast<double>(high), -64),
                          std::ldexp(static_cast<double>(units - high), -64)));
  }
  return out;
}

// The inputs of a law one after another: the last position counts fastest.
class InputCounter {
 public:
  explicit InputCounter(const Distribution& dist) : dist_(dist), digits_(dist.length(), 0) {
    for (const TokenTable& table : dist.tables) probabilities_.push_back(probabilities(table));
  }
  void write(std::span<TokenId> tokens) const {
    for (std::size_t i = 0; i < digits_.size(); ++i) tokens[i] = dist_.table(i).ids()[digits_[i]];
  }
  Twofold probability() const {
    Twofold p{1.0, 0.0};
    for (std::size_t i = 0; i < digits_.size(); ++i)
      if (dist_.table(i).size() > 1) p = p * probabilities_[dist_.positions[i]][digits_[i]];
    return p;
  }
  void next() {
    for (std::size_t i = digits_.size(); i-- > 0;) {
      if (++digits_[i] < dist_.table(i).size()) return;
      digits_[i] = 0;
    }
  }

 private:
  const Distribution& dist_;
  std::vector<std::size_t> digits_;                  // [length]
  std::vector<std::vector<Twofold>> probabilities_;  // [tables][tokens]
};

// The likeliest inputs that trigger the event, the earlier of equals.
struct Likeliest {
  struct Entry {
    double p;
    Trigger trigger;
  };
  std::size_t most;
  std::vector<Entry> entries = {};

  void add(double p, std::uint64_t number, std::span<const TokenId> tokens, double score) {
    if (most == 0 || (entries.size() == most && p <= entries.back().p)) return;
    if (entries.size() == most) entries.pop_back();
    const auto at = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.p < p; });
    entries.insert(at, {p, {.sample = number, .tokens = {tokens.begin(), tokens.end()}, .margin = score}});
  }
};

struct Counted {
  std::uint64_t inputs = 0, hits = 0;
  Twofold hit = {}, missed = {};  // probability of those looked at
  Work work = {};
  Likeliest triggers;
};

// Scores one batch of inputs that begins with the counter's, and moves it on.
void count_batch(Scorer& scorer, InputCounter& counter, Inputs& inputs, Counted& counted) {
  const std::size_t n = inputs.size();
  std::vector<Twofold> p(n);
  for (std::size_t i = 0; i < n; ++i, counter.next()) {
    counter.write(inputs.row(i));
    p[i] = counter.probability();
  }
  std::vector<double> scores(n);
  counted.work += scorer.scores({inputs.batch(), {}}, scores);
  for (std::size_t i = 0; i < n; ++i) {
    const bool hit = scores[i] >= 0.0;
    Twofold& sum = hit ? counted.hit : counted.missed;
    sum = sum + p[i];
    counted.hits += hit;
    if (hit) counted.triggers.add(p[i].high, counted.inputs + i, inputs.sequence(i), scores[i]);
  }
  counted.inputs += n;
}

void fill_whole(Estimate& e, const Counted& counted) {
  e.guarantee = Guarantee::kExact;
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  e.log_p = counted.hits == 0                ? kNever
            : counted.hits == counted.inputs ? 0.0
                                             : std::min(0.0, log_of(counted.hit));
  e.log_low = e.log_high = e.log_certain_low = e.log_p;
}

// What was not looked at may all be of either kind.
void fill_stopped_count(Estimate& e, const Counted& counted, std::uint64_t n) {
  e.guarantee = Guarantee::kConsistent;
  if (counted.hits == 0) e.status = Status::kBudgetSpent;
  const double seen = counted.hit.high + counted.missed.high;
  e.log_p = std::log(counted.hit.high / std::max(seen, std::numeric_limits<double>::min()));
  e.log_low = e.log_certain_low = std::log(counted.hit.high);
  e.log_high = std::max(e.log_p, std::log1p(-std::min(1.0, counted.missed.high)));
  e.warnings.push_back(
      fmt::format("stopped after {} of {} inputs: p is the share among those", counted.inputs, n));
}

}  // namespace

std::uint64_t few_inputs(const InputLaw& law, std::uint64_t most) {
  const Distribution* dist = law.tables();
  if (dist == nullptr) return 0;
  std::uint64_t n = 1;
  for (std::size_t i = 0; i < dist->length(); ++i) {
    const std::uint64_t size = dist->table(i).size();
    if (size > most / n) return 0;
    n *= size;
  }
  return n;
}

Estimate count_all_inputs(const Transformer& model, const InputLaw& law, const Event& event,
                          const EnumerateConfig& config, ThreadPool& pool, const Watch& watch) {
  const std::uint64_t n = few_inputs(law, std::numeric_limits<std::uint64_t>::max());
  if (n == 0 || event.n_parts() > 0) throw std::logic_error("inputs that cannot be enumerated");
  const Stopwatch stopwatch;
  Estimate e{.method = config.method, .seed = config.seed};
  if (const Target* target = event.next_token()) e.target = target->ids();
  const Distribution& dist = *law.tables();
  const auto table = first_layer_table(model, dist, pool);
  InputCounter counter(dist);
  Counted counted{.triggers = {config.max_triggers}};
  std::unique_ptr<Scorer> scorer;
  Inputs inputs;
  for (std::size_t batch = 0; counted.inputs < n; ++batch) {
    if (batch > 0 && !goes_on(watch, progress_of(counted.inputs, n))) break;
    if (batch % kBatchesOfAScorer == 0)
      scorer = event.scorer(model, law, {.max_held = 1, .table = table.get()}, pool);
    inputs.resize(std::min<std::uint64_t>(kInputsAtOnce, n - counted.inputs), dist.length());
    std::fill(inputs.lengths.begin(), inputs.lengths.end(), static_cast<std::uint32_t>(dist.length()));
    count_batch(*scorer, counter, inputs, counted);
  }
  if (counted.inputs == n)
    fill_whole(e, counted);
  else
    fill_stopped_count(e, counted, n);
  for (auto& entry : counted.triggers.entries) e.triggers.push_back(std::move(entry.trigger));
  e.diagnostics = {{"inputs", static_cast<double>(counted.inputs)},
                   {"hits", static_cast<double>(counted.hits)}};
  e.cost.forward = counted.work.forwards;
  e.cost.flops = counted.work.flops;
  e.cost.forward_equivalents = e.cost.flops / forward_flops(model.config(), dist.length());
  e.cost.seconds = stopwatch.seconds();
  return e;
}

}  // namespace deeptail
