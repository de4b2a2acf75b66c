#include <algorithm>
#include <optional>
#include <stdexcept>

#include "model/cpu/pass.h"

namespace deeptail {

namespace {
// Rows that stand alone are kept from the first on: what changes is looked up, not computed from the first change.
SlotLayout slot_layout(const ModelConfig& config, std::size_t length, std::size_t n_prefix) {
  const SlotLayout whole(config, length, true);
  return whole.rows_stand_alone() ? whole : SlotLayout(config, length, true, n_prefix);
}
}  // namespace

struct Rescorer::Impl {
  const Transformer& model;
  std::size_t n_slots;
  ThreadPool& pool;
  SlotLayout layout;
  std::optional<SharedPrefix> prefix;
  std::size_t group;
  AlignedVector<float> slots;        // [n_slots][layout.size()]
  std::vector<TokenId> tokens;       // [n_slots, length]
  std::vector<std::size_t> lengths;  // [n_slots]

  // Scratch of one worker: allocated once, so a step allocates nothing.
  struct Worker {
    Worker(const Transformer& model, const SlotLayout& layout, std::size_t group)
        : pass(model, layout, group), segments(group), resid(group * model.config().d_model), accept(group) {}
    Pass pass;
    std::vector<Segment> segments;
    AlignedVector<float> resid;
    std::vector<std::uint8_t> accept;
  };
  std::vector<std::unique_ptr<Worker>> workers;

  float* slot(std::size_t i) { return slots.data() + i * layout.size(); }
  TokenId* slot_tokens(std::size_t i) { return tokens.data() + i * layout.length(); }
  const SharedPrefix* shared() const { return prefix ? &*prefix : nullptr; }
  Segment segment_of(const Proposal& proposal);
  void check_prefix(const TokenId* row, std::size_t length) const;
  void commit(const Segment& segment, std::size_t slot_index);
};

Rescorer::Rescorer(const Transformer& model, std::size_t n_slots, std::size_t length, ThreadPool& pool,
                   std::span<const TokenId> prefix)
    : impl_(new Impl{
          model, n_slots, pool, slot_layout(model.config(), length, prefix.size()), {}, 0, {}, {}, {}, {}}) {
  if (impl_->layout.first() > 0) impl_->prefix = compute_prefix(model, prefix);
  impl_->group = group_size(model.config(), impl_->layout);
  impl_->slots.resize(n_slots * impl_->layout.size());
  impl_->tokens.resize(n_slots * length);
  impl_->lengths.resize(n_slots, length);
  for (std::size_t i = 0; i < pool.size(); ++i)
    impl_->workers.push_back(std::make_unique<Impl::Worker>(model, impl_->layout, impl_->group));
}
Rescorer::~Rescorer() = default;

void Rescorer::reset(TokenBatch batch, Rows out) {
  Impl& m = *impl_;
  check_tokens(m.model.config(), batch);
  if (batch.length != m.layout.length() || batch.size() > m.n_slots)
    throw std::invalid_argument("Rescorer::reset: batch does not fit the slots");
  for (std::size_t i = 0; i < batch.size(); ++i) m.check_prefix(batch.row(i), batch.length_of(i));
  std::copy(batch.tokens.begin(), batch.tokens.end(), m.tokens.begin());
  for (std::size_t i = 0; i < batch.size(); ++i) m.lengths[i] = batch.length_of(i);
  const std::size_t group = m.group, d = m.model.config().d_model;
  m.pool.for_each_block((batch.size() + group - 1) / group, [&](std::size_t block, std::size_t w) {
    Impl::Worker& worker = *m.workers[w];
    const std::size_t first = block * group, n = std::min(group, batch.size() - first);
    for (std::size_t i = 0; i < n; ++i)
      worker.segments[i] = {.tokens = batch.row(first + i),
                            .length = m.lengths[first + i],
                            .start = m.layout.first(),
                            .fresh = m.slot(first + i),
                            .prefix = m.shared()};
    const Rows resid = out.data != nullptr ? out.from(first) : Rows{worker.resid.data(), d};
    worker.pass.run({worker.segments.data(), n}, nullptr, resid);
  });
}

void Rescorer::Impl::check_prefix(const TokenId* row, std::size_t length) const {
  if (prefix &&
      (length <= prefix->length() || !std::equal(prefix->tokens.begin(), prefix->tokens.end(), row)))
    throw std::invalid_argument("Rescorer: a sequence that does not begin with the prefix and go on");
}

Segment Rescorer::Impl::segment_of(const Proposal& proposal) {
  const TokenId* old = slot_tokens(proposal.slot);
  const std::size_t length = proposal.length == 0 ? layout.length() : proposal.length;
  const std::size_t old_length = lengths[proposal.slot];
  check_prefix(proposal.tokens, length);
  const TokenId* both = proposal.tokens + std::min(length, old_length);
  const auto first =
      static_cast<std::size_t>(std::mismatch(proposal.tokens, both, old).first - proposal.tokens);
  // The last position is always computed, so that an unchanged proposal has a residual too.
  return {.tokens = proposal.tokens,
          .length = length,
          .start = std::min(first, length - 1),
          .cache = slot(proposal.slot),
          .cached_tokens = old,
          .cached_length = old_length,
          .prefix = shared()};
}

void Rescorer::Impl::commit(const Segment& s, std::size_t slot_index) {
  float* to = slot(slot_index);
  if (!layout.rows_stand_alone()) {
    layout.copy(s.fresh, to, s.start, s.length);
  } else {
    for (std::size_t j = s.start; j < s.length; ++j)
      if (!s.unchanged(j))
        std::copy_n(layout.last_input(s.fresh, j), model.config().d_model, layout.last_input(to, j));
    std::copy_n(layout.last_residual(s.fresh), model.config().d_model, layout.last_residual(to));
  }
  std::copy_n(s.tokens + s.start, s.n_rows(), slot_tokens(slot_index) + s.start);
  lengths[slot_index] = s.length;
}

void Rescorer::propose(std::span<const Proposal> proposals, const Decide& decide) {
  Impl& m = *impl_;
  const std::size_t group = m.group, d = m.model.config().d_model;
  m.pool.for_each_block((proposals.size() + group - 1) / group, [&](std::size_t block, std::size_t w) {
    Impl::Worker& worker = *m.workers[w];
    const std::size_t first = block * group, n = std::min(group, proposals.size() - first);
    for (std::size_t i = 0; i < n; ++i) worker.segments[i] = m.segment_of(proposals[first + i]);
    const Rows resid{worker.resid.data(), d};
    worker.pass.run({worker.segments.data(), n}, nullptr, resid);
    decide(first, n, resid, {worker.accept.data(), n}, w);
    for (std::size_t i = 0; i < n; ++i)
      if (worker.accept[i]) m.commit(worker.segments[i], proposals[first + i].slot);
  });
}

void Rescorer::copy_slot(std::size_t from, std::size_t to) {
  if (from == to) return;
  const std::size_t length = impl_->lengths[to] = impl_->lengths[from];
  impl_->layout.copy(impl_->slot(from), impl_->slot(to), impl_->layout.first(), length);
  std::copy_n(impl_->slot_tokens(from), length, impl_->slot_tokens(to));
}

// In place: since parents ascend, nobody before i is a copy of i if i's parent comes after it, nor anybody after i if it
// comes before it.
void Rescorer::resample(std::span<const std::uint32_t> parents) {
  if (parents.size() > impl_->n_slots || !std::is_sorted(parents.begin(), parents.end()))
    throw std::invalid_argument("Rescorer::resample: parents that do not ascend, or too many");
  for (std::size_t i = 0; i < parents.size(); ++i)
    if (parents[i] > i) copy_slot(parents[i], i);
  for (std::size_t i = parents.size(); i-- > 0;)
    if (parents[i] < i) copy_slot(parents[i], i);
}

std::span<const TokenId> Rescorer::tokens(std::size_t slot) const {
  return {impl_->slot_tokens(slot), impl_->lengths[slot]};
}

std::size_t Rescorer::bytes_per_slot(const ModelConfig& config, std::size_t length, std::size_t n_prefix) {
  return slot_layout(config, length, n_prefix).size() * sizeof(float);
}
std::size_t Rescorer::bytes() const { return impl_->slots.size() * sizeof(float); }

}  // namespace deeptail
