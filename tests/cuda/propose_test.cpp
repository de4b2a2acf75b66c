// What the device proposes, run on the host, against propose_tokens. Needs no GPU.
#include "compute_cuda/tokens/propose.cuh"

#include <gtest/gtest.h>

#include "compute_cuda/dense_model.h"
#include "core/random.h"
#include "unit/estimators/propose_tokens.h"

namespace deeptail {
namespace {

struct Proposer {
  explicit Proposer(const Distribution& dist) : inputs(cuda::dense_inputs(dist)) {
    for (const std::size_t p : free_positions(dist)) free.push_back(static_cast<std::uint32_t>(p));
  }
  std::uint32_t propose(const MoveSettings& s, MoveIndex at, std::vector<std::uint32_t>& rows) const {
    const cuda::MoveTables tables{{inputs.tables.data(), inputs.first_row.data(), inputs.guide.data(),
                                   inputs.last_unit.data(), static_cast<int>(inputs.length())},
                                  free.data(),
                                  static_cast<std::uint32_t>(free.size())};
    const cuda::DeviceGroup group{.seed = at.seed,
                                  .begin = 0,
                                  .first_particle = 0,
                                  .level_number = 0,
                                  .first_step = 0,
                                  .block = static_cast<std::uint32_t>(s.block),
                                  .level = 0.0f,
                                  .suffix_share = s.suffix_share,
                                  .redraw_share = s.suffix_share + s.block_share};
    return cuda::propose(tables, group, s.cumulative.data(), at.index, rows.data());
  }
  cuda::DenseInputs inputs;
  std::vector<std::uint32_t> free;
};

MoveSettings settings_for(const Distribution& dist, std::size_t block) {
  std::vector<double> weights(dist.length(), 0.0);
  for (const std::size_t p : free_positions(dist)) weights[p] = 1.0 / static_cast<double>(p + 3);
  return {.cumulative = cumulative_of(weights), .block = block, .block_share = 0.3, .suffix_share = 0.2};
}

TEST(Propose, SameAsOnTheCpu) {
  for (const char* name : {"hex", "caps", "icl", "english"}) {
    const Distribution dist =
        load_distribution(fmt::format("{}/distributions/{}.json", DEEPTAIL_SOURCE, name));
    const Proposer proposer(dist);
    const auto free = free_positions(dist);
    for (const std::size_t block : {1, 2, 9}) {
      const MoveSettings settings = settings_for(dist, block);
      std::size_t changes = 0;
      for (std::uint64_t i = 0; i < 4000; ++i) {
        std::vector<TokenId> tokens(dist.length());
        sample(dist, 3, i / 4, tokens);
        std::vector<std::uint32_t> rows;
        for (std::size_t p = 0; p < dist.length(); ++p) {
          const auto& ids = dist.table(p).ids();
          rows.push_back(
              proposer.inputs.first_row[p] +
              static_cast<std::uint32_t>(std::find(ids.begin(), ids.end(), tokens[p]) - ids.begin()));
        }
        const MoveIndex at{77, step_index(5, i % 4, i)};
        const TokenMove move = propose_tokens(dist, free, settings, at, tokens);
        const std::uint32_t note = proposer.propose(settings, at, rows);
        for (std::size_t p = 0; p < dist.length(); ++p)
          ASSERT_EQ(proposer.inputs.row_token[rows[p]], static_cast<std::uint32_t>(tokens[p]))
              << name << " " << i;
        ASSERT_EQ(note & 3, move.changed ? static_cast<std::uint32_t>(move.kind) : cuda::kNoMove);
        ASSERT_EQ(note >> 2, move.first);
        changes += move.changed;
      }
      EXPECT_GT(changes, 3000u);
    }
  }
}

}  // namespace
}  // namespace deeptail
