// What the device proposes, run on the host, against propose_tokens and PlantedTables. Needs no GPU.
#include "compute_cuda/tokens/propose.cuh"

#include <gtest/gtest.h>

#include "compute_cuda/dense_model.h"
#include "core/random.h"
#include "unit/estimators/propose_tokens.h"
#include "unit/estimators/some_plants.h"

namespace deeptail {
namespace {

// A law as the device has it.
struct Proposer {
  explicit Proposer(const Distribution& dist, const PlantList* plants = nullptr)
      : inputs(cuda::dense_inputs(dist)), base(cuda::dense_base(dist, plants, inputs)) {}
  // state: [length + 1], rows: [length].
  cuda::MoveNote propose(const MoveSettings& s, MoveIndex at, std::span<std::uint32_t> state,
                         std::span<std::uint32_t> rows) const {
    const cuda::MoveTables tables{.sample = {base.tables.data(), inputs.first_row.data(), base.guide.data(),
                                             base.last_unit.data(), static_cast<int>(inputs.length())},
                                  .free = base.free.data(),
                                  .n_free = static_cast<std::uint32_t>(base.free.size()),
                                  .plants = base.plants.empty() ? nullptr : base.plants.data()};
    const cuda::DeviceGroup group{.seed = at.seed,
                                  .base = tables,
                                  .begin = 0,
                                  .first_particle = 0,
                                  .level_number = 0,
                                  .first_step = 0,
                                  .block = static_cast<std::uint32_t>(s.block),
                                  .level = 0.0f,
                                  .suffix_share = s.suffix_share,
                                  .redraw_share = s.suffix_share + s.block_share};
    return cuda::propose(group, s.cumulative.data(), at.index, state.data(), rows.data());
  }
  std::uint32_t row(std::size_t position, const TokenTable& table, TokenId token) const {
    const auto& ids = table.ids();
    return inputs.first_row[position] +
           static_cast<std::uint32_t>(std::find(ids.begin(), ids.end(), token) - ids.begin());
  }
  cuda::DenseInputs inputs;
  cuda::DenseBase base;
};

MoveSettings settings_for(std::span<const std::size_t> free, std::size_t n_parts, std::size_t block) {
  std::vector<double> weights(n_parts, 0.0);
  for (const std::size_t p : free) weights[p] = 1.0 / static_cast<double>(p + 3);
  return {.cumulative = cumulative_of(weights), .block = block, .block_share = 0.3, .suffix_share = 0.2};
}

TEST(Propose, SameAsOnTheCpu) {
  for (const char* name : {"hex", "caps", "icl", "english"}) {
    const Distribution dist =
        load_distribution(fmt::format("{}/distributions/{}.json", DEEPTAIL_SOURCE, name));
    const Proposer proposer(dist);
    const auto free = free_positions(dist);
    for (const std::size_t block : {1, 2, 9}) {
      const MoveSettings settings = settings_for(free, dist.length(), block);
      std::size_t changes = 0;
      for (std::uint64_t i = 0; i < 4000; ++i) {
        std::vector<TokenId> tokens(dist.length());
        sample(dist, 3, i / 4, tokens);
        std::vector<std::uint32_t> rows;
        for (std::size_t p = 0; p < dist.length(); ++p)
          rows.push_back(proposer.row(p, dist.table(p), tokens[p]));
        std::vector<std::uint32_t> state = rows;
        state.push_back(cuda::kNoPlant);
        const MoveIndex at{77, step_index(5, i % 4, i)};
        const TokenMove move = propose_tokens(dist, free, settings, at, tokens);
        const cuda::MoveNote note = proposer.propose(settings, at, state, rows);
        for (std::size_t p = 0; p < dist.length(); ++p)
          ASSERT_EQ(proposer.inputs.row_token[rows[p]], static_cast<std::uint32_t>(tokens[p]))
              << name << " " << i;
        ASSERT_TRUE(std::equal(rows.begin(), rows.end(), state.begin()));
        ASSERT_EQ(state.back(), cuda::kNoPlant);
        ASSERT_EQ(note.kind, move.changed ? static_cast<std::uint32_t>(move.kind) : cuda::kNoMove);
        ASSERT_EQ(note.part, move.part);
        ASSERT_EQ(note.position, move.first);
        changes += move.changed;
      }
      EXPECT_GT(changes, 3000u);
    }
  }
}

// A walk of proposals that are all taken, as the law moves its numbers.
TEST(Propose, PlantsAsOnTheCpu) {
  ThreadPool pool(1);
  for (const char* name : {"hex", "icl", "english"}) {
    const Distribution dist =
        load_distribution(fmt::format("{}/distributions/{}.json", DEEPTAIL_SOURCE, name));
    const std::size_t length = dist.length();
    const PlantList plants = some_plants(dist, 400);
    ASSERT_GT(plants.size(), 100u);
    const PlantedTables law(dist, plants);
    const Proposer proposer(dist, &plants);
    const auto free = law.free_parts();
    for (const std::size_t block : {1, 3, 9}) {
      const MoveSettings settings = settings_for(free, length + 1, block);
      std::vector<std::uint64_t> numbers(length + 1);
      sample_parts(law, 5, block, pool, numbers);
      Inputs input;
      law.make(numbers, input, pool);
      std::vector<std::uint32_t> state, rows;
      for (std::size_t p = 0; p < length; ++p) {
        state.push_back(proposer.row(p, dist.table(p), dist.table(p).draw(numbers[p])));
        rows.push_back(proposer.row(p, dist.table(p), input.tokens[p]));
      }
      state.push_back(static_cast<std::uint32_t>(plants.chances.draw(numbers[length])));
      std::size_t unseen = 0, replanted = 0;
      for (std::uint64_t step = 0; step < 3000; ++step) {
        const MoveIndex at{78, step_index(2, step, block)};
        std::vector<Redraw> redraws;
        std::uint32_t part = kUnchanged, first_changed = 0;
        const MoveKind kind = redraw_parts(free, settings, at, [&](std::size_t which, std::uint64_t number) {
          redraws.push_back({0, static_cast<std::uint32_t>(which), number});
          part = std::min(part, redraws.back().part);
          replanted += which == length;
        });
        law.redraw(redraws, numbers, input, {&first_changed, 1}, pool);
        const cuda::MoveNote note = proposer.propose(settings, at, state, rows);
        for (std::size_t p = 0; p < length; ++p) {
          ASSERT_EQ(proposer.inputs.row_token[rows[p]], static_cast<std::uint32_t>(input.tokens[p])) << step;
          ASSERT_EQ(state[p], proposer.row(p, dist.table(p), dist.table(p).draw(numbers[p])));
        }
        ASSERT_EQ(state[length], static_cast<std::uint32_t>(plants.chances.draw(numbers[length])));
        const bool changed = first_changed != kUnchanged;
        unseen += !changed;
        ASSERT_EQ(note.kind, changed ? static_cast<std::uint32_t>(kind) : cuda::kNoMove);
        ASSERT_EQ(note.part, part);
        ASSERT_EQ(note.position, changed ? first_changed : length);
      }
      EXPECT_GT(unseen, 10u);
      EXPECT_GT(replanted, 100u);
    }
  }
}

}  // namespace
}  // namespace deeptail
