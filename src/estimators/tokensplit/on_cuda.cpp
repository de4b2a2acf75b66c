// tokensplit on a CUDA device, where this build has the backend.

#include "core/stopwatch.h"
#include "deeptail/estimators.h"

#ifdef DEEPTAIL_HAS_CUDA

#include "estimators/tokensplit/on_cuda.h"

#include <algorithm>

#include "compute_cuda/dense_model.h"
#include "compute_cuda/truth_engine.h"
#include "estimators/tokensplit/many.h"
#include "model/head/float_level.h"

namespace deeptail {

namespace {

static_assert(kNoPlant == cuda::kNoPlant);

// Cells are rows of DenseInputs: (position, token) pairs.
class CudaParticles final : public ParticleDevice {
 public:
  CudaParticles(const Transformer& model, const Distribution& dist,
                const cuda::ParticleEngineOptions& options)
      : dist_(dist), inputs_(cuda::dense_inputs(dist)), engine_(cuda::dense_model(model), inputs_, options) {
    for (const TokenTable& table : dist.tables) {
      std::vector<std::uint32_t>& entry = entry_of_.emplace_back(model.config().d_vocab, 0);
      for (std::uint32_t i = 0; i < table.size(); ++i) entry[static_cast<std::size_t>(table.ids()[i])] = i;
    }
  }

  std::size_t add_base(const Component& component) override {
    const PlantList* plants = component.plants ? &*component.plants : nullptr;
    return engine_.add_base(cuda::dense_base(component.tables, plants, inputs_));
  }
  void remove_base(std::size_t base) override { engine_.remove_base(base); }

  std::size_t lanes() const override { return engine_.options().lanes; }
  std::size_t max_particles() const override { return engine_.options().max_particles; }
  std::size_t max_pieces() const override { return engine_.options().max_groups; }

  void encode(std::span<const TokenId> tokens, std::span<std::uint32_t> cells) const override {
    const std::size_t length = dist_.length();
    for (std::size_t i = 0; i < tokens.size(); i += length)
      for (std::size_t p = 0; p < length; ++p)
        cells[i + p] =
            inputs_.first_row[p] + entry_of_[dist_.positions[p]][static_cast<std::size_t>(tokens[i + p])];
  }
  void decode(std::span<const std::uint32_t> cells, std::span<TokenId> tokens) const override {
    for (std::size_t i = 0; i < cells.size(); ++i)
      tokens[i] = static_cast<TokenId>(inputs_.row_token[cells[i]]);
  }

  void score(std::size_t lane, std::span<const ScorePiece> pieces, bool roughly) override {
    const cuda::ParticleEngine::Lane& memory = engine_.lane(lane);
    std::vector<cuda::ParticleGroup> groups;
    auto to = memory.rows.begin();
    for (const ScorePiece& piece : pieces) {
      to = std::copy(piece.cells.begin(), piece.cells.end(), to);
      groups.push_back({.n_particles = static_cast<std::uint32_t>(piece.margins.size()),
                        .target = static_cast<std::uint32_t>(piece.target)});
    }
    const bool rough = roughly && engine_.score_fast(lane, groups);
    if (!rough) engine_.score(lane, groups);
    std::size_t at = 0;
    for (const ScorePiece& piece : pieces)
      for (Margin& margin : piece.margins) {
        const TokenId other = rough ? piece.target : static_cast<TokenId>(memory.other[at]);
        margin = {memory.margin[at++], piece.target, other};
      }
  }

  void move(std::size_t lane, std::span<const MovePiece> pieces) override {
    const cuda::ParticleEngine::Lane& memory = engine_.lane(lane);
    std::vector<cuda::MovingGroup> groups;
    auto to = memory.states.begin();
    for (const MovePiece& piece : pieces) {
      to = std::copy(piece.states.begin(), piece.states.end(), to);
      groups.push_back(group_of(piece));
    }
    engine_.move(lane, groups);
    auto from = memory.states.begin();
    for (std::size_t g = 0; g < pieces.size(); ++g) {
      const auto end = from + static_cast<std::ptrdiff_t>(pieces[g].states.size());
      std::copy(from, end, pieces[g].states.begin());
      from = end;
      add_counts(engine_.counts(lane, g), *pieces[g].outcome);
    }
  }

 private:
  cuda::MovingGroup group_of(const MovePiece& piece) const {
    const MoveRound& round = *piece.round;
    cuda::MovingGroup group;
    group.n_particles = static_cast<std::uint32_t>(piece.states.size() / (dist_.length() + 1));
    group.base = piece.base;
    group.target = static_cast<std::uint32_t>(piece.target);
    group.first_particle = static_cast<std::uint32_t>(piece.first_particle);
    group.seed = round.seed;
    group.level_number = static_cast<std::uint32_t>(round.level_number);
    group.first_step = static_cast<std::uint32_t>(piece.first_step);
    group.n_steps = static_cast<std::uint32_t>(piece.n_steps);
    group.level = float_level(round.level);  // the engine compares in fp32
    group.block = static_cast<std::uint32_t>(round.settings.block);
    group.suffix_share = round.settings.suffix_share;
    group.block_share = round.settings.block_share;
    group.cumulative = round.settings.cumulative.data();
    return group;
  }

  static void add_counts(const cuda::GroupCounts& counts, MoveOutcome& outcome) {
    const auto add = [&](Tally& tally, const cuda::MoveCounts& found) {
      tally.proposed += found.proposed;
      tally.accepted += found.accepted;
      outcome.accepted += found.accepted;
    };
    for (std::size_t i = 0; i < counts.single.size(); ++i) add(outcome.tally.single[i], counts.single[i]);
    add(outcome.tally.block, counts.block);
    add(outcome.tally.suffix, counts.suffix);
    for (std::size_t p = 0; p < counts.from.size(); ++p) outcome.from[p] += counts.from[p];
  }

  const Distribution& dist_;
  cuda::DenseInputs inputs_;
  std::vector<std::vector<std::uint32_t>> entry_of_;  // [tables][d_vocab]: place of a token in its table
  cuda::ParticleEngine engine_;
};

}  // namespace

std::unique_ptr<ParticleDevice> make_cuda_particles(const Transformer& model, const Distribution& dist,
                                                    const cuda::ParticleEngineOptions& options) {
  cuda::device_name();  // so that the first complaint is about the device
  return std::make_unique<CudaParticles>(model, dist, options);
}

void tokensplit_many(const Transformer& model, const Distribution& dist,
                     std::span<const TokensplitTask> tasks, const Answers& answers, std::size_t at_once,
                     const Watch& watch) {
  try {
    const auto device = make_cuda_particles(model, dist);
    run_many(model, dist, tasks, answers, at_once, *device, {}, watch);
  } catch (const cuda::Failure& failure) {
    throw DeviceError(Device::kCuda, failure.what());
  }
}

}  // namespace deeptail

#else

namespace deeptail {

void tokensplit_many(const Transformer&, const Distribution&, std::span<const TokensplitTask>, const Answers&,
                     std::size_t, const Watch&) {
  throw DeviceError::not_built(Device::kCuda);
}

}  // namespace deeptail

#endif

namespace deeptail {

Estimate tokensplit_on_cuda(const Transformer& model, const Distribution& dist, const Target& target,
                            const TokensplitConfig& config, const Watch& watch) {
  const Stopwatch stopwatch;
  Estimate estimate;
  const TokensplitTask task{target, config};
  tokensplit_many(model, dist, {&task, 1},
                  {.on_estimate = [&](std::size_t, Estimate e) { estimate = std::move(e); }}, 1, watch);
  estimate.cost.seconds = stopwatch.seconds();
  return estimate;
}

}  // namespace deeptail
