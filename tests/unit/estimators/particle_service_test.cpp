// Many targets through one service must give what tokensplit gives each of them alone, to the last digit.
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "core/random.h"
#include "estimators/input_screen.h"
#include "estimators/tokensplit/many.h"
#include "estimators/tokensplit/scan.h"
#include "sizes.h"
#include "unit/estimators/counting_model.h"
#include "unit/estimators/propose_tokens.h"

namespace deeptail {
namespace {

constexpr std::array<double, 4> kChances = {0.7, 0.2, 0.08, 0.02};

// Every proposal by a full pass and all logits.
class PlainDevice final : public ParticleDevice {
 public:
  explicit PlainDevice(const CountingModel& toy, std::size_t lanes = 2)
      : model_(toy.model()), length_(toy.dist().length()), lanes_(lanes) {
    add_base({.name = "prior", .tables = toy.dist()});
  }
  ~PlainDevice() override { EXPECT_EQ(bases_.size(), 1u) << "a law that nobody uses any more"; }

  std::size_t add_base(const Component& component) override {
    const std::lock_guard lock(mutex_);
    bases_.emplace(next_base_, component);
    planted += component.plants.has_value();
    return next_base_++;
  }
  void remove_base(std::size_t base) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(bases_.erase(base), 1u);
  }
  std::size_t lanes() const override { return lanes_; }
  std::size_t max_particles() const override { return 300; }
  std::size_t max_pieces() const override { return 3; }
  // Cells differ from tokens, so that mixing them up shows.
  void encode(std::span<const TokenId> tokens, std::span<std::uint32_t> cells) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) cells[i] = static_cast<std::uint32_t>(tokens[i]) + 100;
  }
  void decode(std::span<const std::uint32_t> cells, std::span<TokenId> tokens) const override {
    for (std::size_t i = 0; i < cells.size(); ++i) tokens[i] = static_cast<TokenId>(cells[i]) - 100;
  }

  void score(std::size_t, std::span<const ScorePiece> pieces, bool) override {
    count_call(pieces.size());
    for (const ScorePiece& piece : pieces) {
      std::vector<TokenId> tokens(piece.cells.size());
      decode(piece.cells, tokens);
      const auto found = margins_of(tokens, piece.target);
      std::copy(found.begin(), found.end(), piece.margins.begin());
    }
  }

  void move(std::size_t, std::span<const MovePiece> pieces) override {
    count_call(pieces.size());
    for (std::size_t i = 1; i < pieces.size(); ++i) ASSERT_LE(pieces[i].n_steps, pieces[i - 1].n_steps);
    for (const MovePiece& piece : pieces)
      for (std::size_t s = 0; s < piece.n_steps; ++s) step(piece, piece.first_step + s);
  }

  std::atomic<int> calls = 0, fail_at = -1;
  std::atomic<std::size_t> most_pieces = 0, planted = 0;

 private:
  const Component& base(std::size_t number) {
    const std::lock_guard lock(mutex_);
    return bases_.at(number);
  }
  void count_call(std::size_t pieces) {
    if (calls++ == fail_at) throw std::runtime_error("device lost");
    if (pieces > most_pieces) most_pieces = pieces;
  }

  std::vector<Margin> margins_of(std::span<const TokenId> tokens, TokenId target) const {
    const std::size_t n = tokens.size() / length_, d = model_.config().d_model;
    ThreadPool pool(1);
    AlignedVector<float> resid(n * d);
    final_residuals(model_, {tokens, length_}, pool, {resid.data(), d});
    std::vector<Margin> out(n);
    margins(model_.head(), Target({target}, model_.head()), n, {resid.data(), d}, pool, out);
    return out;
  }

  TokenState state_of(std::span<const std::uint32_t> words) const {
    TokenState state{.own = std::vector<TokenId>(length_), .plant = words[length_]};
    decode(words.first(length_), state.own);
    return state;
  }

  void step(const MovePiece& piece, std::size_t number) {
    const MoveRound& round = *piece.round;
    const Component& law = base(piece.base);
    const PlantList* plants = law.plants ? &*law.plants : nullptr;
    std::vector<std::size_t> free = free_positions(law.tables);
    if (plants != nullptr) free.push_back(length_);
    const std::size_t width = length_ + 1, n = piece.states.size() / width;
    std::vector<TokenState> proposed;
    std::vector<TokenMove> moves;
    std::vector<TokenId> tokens;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t index = step_index(round.level_number, number, piece.first_particle + i);
      proposed.push_back(state_of(piece.states.subspan(i * width, width)));
      moves.push_back(
          propose_state(law.tables, plants, free, round.settings, {round.seed, index}, proposed.back()));
      const std::vector<TokenId> seen = proposed.back().seen(plants);
      tokens.insert(tokens.end(), seen.begin(), seen.end());
    }
    const std::vector<Margin> found = margins_of(tokens, piece.target);
    for (std::size_t i = 0; i < n; ++i) {
      const bool accept = found[i].value >= round.level;
      if (moves[i].changed) note(moves[i], accept, *piece.outcome);
      if (!accept && moves[i].changed) continue;
      const auto words = piece.states.subspan(i * width, width);
      encode(proposed[i].own, words.first(length_));
      if (plants != nullptr) words[length_] = static_cast<std::uint32_t>(proposed[i].plant);
    }
  }

  static void note(const TokenMove& move, bool accept, MoveOutcome& outcome) {
    Tally& tally = outcome.tally.of(move.kind, move.part);
    tally.proposed += 1.0;
    tally.accepted += accept;
    outcome.accepted += accept;
    ++outcome.from[move.first];
  }

  const Transformer& model_;
  std::size_t length_;
  std::mutex mutex_;
  std::map<std::size_t, Component> bases_;
  std::size_t next_base_ = kPrior;
  std::size_t lanes_;
};

const CountingModel& served() {
  static const CountingModel model(8, kChances, 13);
  return model;
}

// Sizes are given, and the budget is far away: then the work that is counted decides nothing.
std::vector<TokensplitTask> tasks() {
  std::vector<TokensplitTask> out;
  for (std::uint64_t i = 0; i < sized<std::uint64_t>(4, 3); ++i) {
    const TokenId target = i == 2 ? 0 : CountingModel::kTarget;
    out.push_back({Target({target}, served().model().head()),
                   {.budget = 1e5,
                    .replicas = 2 + i % 2,
                    .seed = 10 + i,
                    .particles = 6 + 3 * i,
                    .first_draw = 128 + 100 * i,
                    .moves = 7 - i}});
  }
  return out;
}

// All but what counts logits and time.
std::string comparable(Estimate e) {
  e.cost.flops = e.cost.forward_equivalents = e.cost.seconds = 0.0;
  e.cost.logits = 0;
  e.provenance = {};
  return to_json(e);
}

const std::vector<std::string>& expected() {
  static const std::vector<std::string> estimates = [] {
    ThreadPool pool(2);
    std::vector<std::string> out;
    for (const TokensplitTask& task : tasks())
      out.push_back(
          comparable(tokensplit(served().model(), served().dist(), task.target, task.config, pool)));
    return out;
  }();
  return estimates;
}

TEST(ParticleService, GivesWhatEachTargetGetsAlone) {
  struct Case {
    std::size_t at_once, lanes, steps, piece;
  };
  const Case cases[] = {{4, 2, 3, 100}, {3, 3, 64, 17}, {1, 1, 16, 1 << 13}};
  for (const Case& c : std::span(cases).first(sized(3, 1))) {
    PlainDevice device(served(), c.lanes);
    std::vector<std::string> found(tasks().size());
    double seconds = 0.0;
    run_many(served().model(), served().dist(), tasks(),
             {.on_estimate =
                  [&](std::size_t i, Estimate e) {
                    EXPECT_TRUE(found[i].empty()) << "told twice";
                    seconds += e.cost.seconds;
                    found[i] = comparable(std::move(e));
                  }},
             c.at_once, device, {.steps = c.steps, .piece = c.piece});
    EXPECT_EQ(found, expected()) << c.at_once << " at once";
    EXPECT_GT(seconds, 0.0);
    EXPECT_GT(device.planted, 0u) << "no population ran under a law with plants";
    if (c.at_once > 1) {
      EXPECT_GT(device.most_pieces, 1u) << "nothing was gathered";
    }
  }
}

TEST(ParticleService, CountsTheWorkAsTheCpuDoes) {
  ThreadPool pool(1);
  const TokensplitTask task = tasks()[0];
  const Estimate cpu = tokensplit(served().model(), served().dist(), task.target, task.config, pool);
  PlainDevice device(served());
  Estimate e;
  run_many(served().model(), served().dist(), {&task, 1},
           {.on_estimate = [&](std::size_t, Estimate x) { e = x; }}, 1, device);
  EXPECT_EQ(e.cost.score_evals, cpu.cost.score_evals);
  EXPECT_EQ(e.cost.forward, cpu.cost.forward);
  EXPECT_EQ(e.cost.logits, e.cost.score_evals * CountingModel::kVocab);
  // All that differs are logits of a vocabulary of 6.
  EXPECT_NEAR(e.cost.flops / cpu.cost.flops, 1.0, 0.2);
  EXPECT_LE(e.cost.flops, cpu.cost.flops);
}

TEST(ParticleService, ScansAsTheCpuDoes) {
  ThreadPool pool(1);
  const TokenTables law(served().dist());
  const NextToken event(served().target());
  const Screen screen = screen_for(served().model(), law, 3, pool, nullptr);
  const TokenProblem problem{.model = served().model(), .law = law, .event = event, .screen = &screen};
  PlainDevice device(served());
  ParticleService service(device);
  const double flops = 2e4 * forward_flops(served().model().config(), served().dist().length());
  const ScanResult here = scan_tokens(CpuPlace{problem}, flops, 4, pool),
                   there = scan_tokens(ServedPlace{problem, service}, flops, 4, pool);
  ASSERT_TRUE(here.plants && there.plants);
  ASSERT_EQ(there.plants->size(), here.plants->size());
  for (std::size_t i = 0; i < here.plants->size(); ++i) {
    EXPECT_TRUE(there.plants->plants[i] == here.plants->plants[i]);
    EXPECT_EQ(there.plants->chances.last_unit(i), here.plants->chances.last_unit(i));
  }
  EXPECT_EQ(there.work.forwards, here.work.forwards);
  EXPECT_EQ(there.work.rescored, here.work.rescored);
  // All that differs are logits that the screen leaves open.
  EXPECT_NEAR(there.work.flops / here.work.flops, 1.0, 0.05);
  EXPECT_LE(there.work.flops, here.work.flops);
}

TEST(ParticleService, ADeviceThatFailsEndsEverybody) {
  for (const int fail_at : {0, 3, 20}) {
    PlainDevice device(served());
    device.fail_at = fail_at;
    EXPECT_THROW(run_many(served().model(), served().dist(), tasks(),
                          {.on_estimate = [](std::size_t, const Estimate&) {}}, 4, device),
                 std::runtime_error);
  }
}

// Where one cannot be told, the others are ended, and what they have by then must not pass for a result.
TEST(ParticleService, AfterAFailureNobodyIsTold) {
  PlainDevice device(served());
  std::size_t told = 0;
  const auto fail = [&](std::size_t, const Estimate&) {
    ++told;
    throw std::runtime_error("no space left");
  };
  EXPECT_THROW(run_many(served().model(), served().dist(), tasks(), {.on_estimate = fail}, 4, device),
               std::runtime_error);
  EXPECT_EQ(told, 1u);
}

TEST(ParticleService, StopsWhenTold) {
  PlainDevice device(served());
  std::size_t told = 0;
  std::uint64_t last = 0;
  run_many(served().model(), served().dist(), tasks(),
           {.on_estimate =
                [&](std::size_t, const Estimate& e) {
                  ++told;
                  EXPECT_NE(e.status, Status::kOk);
                }},
           2, device, {}, [&](const Progress& p) {
             EXPECT_GE(p.done, last);
             EXPECT_GT(p.total, p.done);
             last = p.done;
             return false;
           });
  EXPECT_GE(told, 1u);
  EXPECT_LE(told, 2u);
}

// Moves that are under way end at the next chance.
TEST(ParticleService, HurriesWhenTold) {
  PlainDevice device(served());
  ParticleService service(device, {.steps = 1});
  const MoveSettings settings{.cumulative = cumulative_of(std::vector<double>(9, 1.0))};
  const MoveRound round{-1e9, 0, 0, 1 << 20, settings, 1};
  std::vector<TokenId> tokens(9, 1);
  tokens.back() = CountingModel::kEnd;
  std::vector<std::uint32_t> state(10, kNoPlant);
  device.encode(tokens, std::span(state).first(9));
  const auto run = [&] {
    return service.run_moves(round, state, 9, CountingModel::kTarget, ParticleDevice::kPrior);
  };
  std::thread caller(run);
  while (device.calls < 3) std::this_thread::yield();
  service.hurry();
  caller.join();
  EXPECT_LT(device.calls, 1 << 20);
  EXPECT_EQ(run().accepted, 0u);
}

TEST(ParticleService, RefusesSetsOfTargets) {
  PlainDevice device(served());
  std::vector<TokensplitTask> some = tasks();
  some.erase(some.begin() + 2, some.end());
  some[1].target = Target({0, CountingModel::kTarget}, served().model().head());
  std::size_t good = 0;
  std::string why;
  run_many(
      served().model(), served().dist(), some,
      {.on_estimate = [&](std::size_t i, const Estimate&) { good += i == 0; },
       .on_refusal = [&](std::size_t i, const std::string& text) { why = i == 1 ? text : "wrong task"; }},
      2, device);
  EXPECT_EQ(good, 1u);
  EXPECT_EQ(why, "a target of 2 tokens: tokensplit on a device takes one token; use the CPU");
  EXPECT_THROW(run_many(served().model(), served().dist(), some,
                        {.on_estimate = [](std::size_t, const Estimate&) {}}, 2, device),
               InputError);
}

}  // namespace
}  // namespace deeptail
