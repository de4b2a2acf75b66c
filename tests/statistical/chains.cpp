// Patterns in texts of a Markov chain, whose probabilities dynamic programming gives exactly, down to 1e-13: a model of Llama's
// form whose attention adds nothing, so that its next token depends on the last one alone.
//
//     chains [--first 0] [--seeds 2000] [--threads 0] [--seconds 0] [--only TEXT] [--out FILE] [--with FILE]..
//
// Splitting, which costs ten times and more of payoff, is asked one in 20 of the seeds. Exit status 1 when a mean is off by more than
// four standard errors, or payoff's interval holds the truth in less than 93 % of the seeds.
#include <fstream>
#include <mutex>
#include <random>

#include "core/stopwatch.h"
#include "deeptail/load.h"
#include "deeptail/payoff.h"
#include "deeptail/trajectory.h"
#include "statistical/many_seeds.h"
#include "unit/tiny_llama.h"

namespace deeptail {
namespace {

constexpr std::size_t kVocab = 24, kSteps = 32;

class ChainModel {
 public:
  explicit ChainModel(unsigned seed) : tensors_(seed), model_(kLlama.made(tensors_)) {}
  const Transformer& model() const { return model_; }

 private:
  static constexpr TinyLlama kLlama{.vocab = kVocab,
                                    .width = 16,
                                    .hidden = 32,
                                    .kv_heads = 2,
                                    .context = 64,
                                    .attention = 0.5,
                                    .attention_out = 0.0,
                                    .mlp = 0.4,
                                    .head = 0.4};
  RandomTensors tensors_;
  Transformer model_;
};

// One prompt of one token.
class OnePrompt final : public InputLaw {
 public:
  OnePrompt() : facts_{.name = "one", .sha256 = "", .d_vocab = kVocab, .n_parts = 1, .max_length = 1} {}
  const LawFacts& facts() const override { return facts_; }
  std::size_t first_position(std::size_t) const override { return 0; }
  void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool&) const override {
    out.resize(parts.size(), 1);
    std::fill(out.tokens.begin(), out.tokens.end(), 0);
    std::fill(out.lengths.begin(), out.lengths.end(), 1u);
  }

 private:
  LawFacts facts_;
};

SamplingConfig chain_sampling() { return {.temperature = 1.0, .max_tokens = kSteps}; }

// [last token][next token]
std::vector<std::vector<double>> transitions(const Transformer& model) {
  ThreadPool pool(1);
  NextTokenLaw law(chain_sampling(), kVocab);
  const std::size_t d = model.config().d_model;
  AlignedVector<float> resid(d), found(kVocab);
  std::vector<std::vector<double>> out;
  for (TokenId a = 0; a < static_cast<TokenId>(kVocab); ++a) {
    const std::vector<TokenId> tokens = {a};
    final_residuals(model, {tokens, 1}, pool, {resid.data(), d});
    logits(model.head(), 1, {resid.data(), d}, pool, {found.data(), kVocab});
    law.set(found);
    std::vector<double>& row = out.emplace_back();
    for (std::size_t v = 0; v < kVocab; ++v) row.push_back(law.p(static_cast<TokenId>(v)));
  }
  return out;
}

// Pr[accepted within kSteps], by (steps left, last token, state).
double exact(const std::vector<std::vector<double>>& p, const TokenAutomaton& automaton) {
  const std::size_t n = automaton.n_states();
  std::vector<double> now(kVocab * n, 0.0);
  for (std::size_t a = 0; a < kVocab; ++a)
    for (std::uint32_t s = 0; s < n; ++s)
      now[a * n + s] = s == TokenAutomaton::accepted() || automaton.accepts_at_end(s) ? 1.0 : 0.0;
  for (std::size_t left = 0; left < kSteps; ++left) {
    std::vector<double> next(kVocab * n, 0.0);
    for (std::size_t a = 0; a < kVocab; ++a)
      for (std::uint32_t s = 0; s < n; ++s)
        for (std::size_t v = 0; v < kVocab; ++v)
          next[a * n + s] += p[a][v] * now[v * n + automaton.next(s)[v]];
    now = std::move(next);
  }
  return now[automaton.start()];  // after token 0
}

struct ChainEvent {
  std::string name;
  std::shared_ptr<const ContinuationEvent> event;
  double log_p;
};

TokenTexts letters() {
  TokenTexts texts;
  for (std::size_t v = 0; v < kVocab; ++v) texts.text.emplace_back(1, static_cast<char>('a' + v));
  return texts;
}

// Strings that a chain makes of unlikely steps, one for each decade that is wanted, and a pattern.
std::vector<ChainEvent> chain_events(const std::vector<std::vector<double>>& p) {
  std::vector<ChainEvent> out;
  const auto add = [&](const std::string& name, const ByteDfa& dfa) {
    const auto pattern =
        std::make_shared<const TextPattern>(TextPattern{.kind = "contains",
                                                        .value = name,
                                                        .automaton = TokenAutomaton(dfa, letters(), {}),
                                                        .dfa = dfa,
                                                        .texts = letters(),
                                                        .text = name});
    out.push_back({name, std::make_shared<const ContinuationEvent>(pattern, chain_sampling()),
                   std::log(exact(p, pattern->automaton))});
  };
  std::mt19937 engine(3);
  for (const double decade : {-3.0, -5.0, -7.0, -9.0, -11.0, -13.0})
    for (int tries = 0; tries < 10000; ++tries) {
      std::string text;
      const int length = decade > -4 ? 3 : decade > -6 ? 4 : decade > -10 ? 5 + tries % 2 : 6 + tries % 2;
      for (int i = 0; i < length; ++i) text += static_cast<char>('a' + engine() % kVocab);
      add(text, contains(text));
      if (std::abs(out.back().log_p / std::log(10.0) - decade) < 0.15) break;
      out.pop_back();
    }
  add("b[c-f]*g[h-k]l", matches("b[c-f]*g[h-k]l", "test"));
  add("^[a-p]*$", matches("^[a-p]*$", "test"));
  return out;
}

struct Way {
  std::string name;
  std::uint64_t share;  // it is asked one in so many of the seeds
  std::function<Estimate(const Transformer&, const ContinuationEvent&, std::uint64_t, ThreadPool&)> ask;
};

std::vector<Way> ways() {
  static const OnePrompt law;
  return {{"payoff", 1,
           [](auto& m, auto& e, std::uint64_t seed, ThreadPool& pool) {
             return payoff(m, law, e, {.budget = 2000, .seed = seed}, pool);
           }},
          {"trajectory", 20,
           [](auto& m, auto& e, std::uint64_t seed, ThreadPool& pool) {
             return trajectory(m, law, e, {.budget = 20000, .seed = seed}, pool);
           }},
          {"static", 20, [](auto& m, auto& e, std::uint64_t seed, ThreadPool& pool) {
             return static_split(m, law, e, {.budget = 40000, .seed = seed}, pool);
           }}};
}

int run(const SeedOptions& o) {
  const ChainModel chain(4);
  const auto p = transitions(chain.model());
  struct Cell {
    const ChainEvent* event;
    const Way* way;
    SeedTally tally = {};
  };
  const std::vector<ChainEvent> events = chain_events(p);
  const auto all = ways();
  std::vector<Cell> cells;
  for (const ChainEvent& e : events)
    for (const Way& way : all)
      if ((e.name + "," + way.name).find(o.only) != std::string::npos) cells.push_back({&e, &way});
  const Stopwatch watch;
  std::mutex guard;
  in_parallel(cells.size() * o.seeds, o.threads, [&](std::size_t i, ThreadPool& pool) {
    if (o.seconds > 0.0 && watch.seconds() > o.seconds) return false;
    Cell& cell = cells[i % cells.size()];
    const std::uint64_t seed = o.first + i / cells.size();
    if (seed % cell.way->share != 0) return true;
    const Estimate e = cell.way->ask(chain.model(), *cell.event->event, derived_seed(7, seed), pool);
    const std::lock_guard lock(guard);
    cell.tally.add(e, cell.event->log_p);
    return true;
  });
  std::ofstream out;
  if (!o.out.empty()) out.open(o.out);
  bool good = true;
  const auto earlier = read_tallies(o.with);
  fmt::print("pattern,method,p,{}\n", SeedTally::kHeader);
  for (Cell& c : cells) {
    const std::string name = c.event->name + "," + c.way->name;
    if (c.tally.n > 0.0 && out.is_open()) write_tally(out, name, c.tally);
    if (const auto found = earlier.find(name); found != earlier.end()) c.tally += found->second;
    if (c.tally.n == 0.0) continue;
    fmt::print("{},{:.3e},{}\n", name, std::exp(c.event->log_p), c.tally.csv());
    good = good && std::abs(c.tally.z()) < 4.0 && (c.way->name != "payoff" || c.tally.coverage() >= 0.93);
  }
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
