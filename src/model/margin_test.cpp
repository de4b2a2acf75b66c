// "Is the margin at least this?", with as few logits as it takes.
//
// A row fails as soon as one other logit o gives best_target - o < level (in fp32, as margins() subtracts);
// the subtraction is monotone in o, so the largest o decides exactly as any witness does. A row passes only
// after the whole vocabulary has had its say.
#include <algorithm>
#include <numeric>

#include "model/unembed.h"

namespace deeptail {

namespace {
struct Lead {
  float value = 0.0f;  // best target logit
  TokenId id = -1;
};

// What is asked of a margin.
struct Question {
  bool event;   // is the argmax in the target?
  float level;  // else: is the margin at least this?

  // Whether this one other logit settles it against the row.
  bool refuted(const Lead& lead, float other, TokenId other_id) const {
    if (!event) return lead.value - other < level;
    return other > lead.value || (other == lead.value && other_id < lead.id);
  }
};
}  // namespace

struct MarginTest::Scratch {
  explicit Scratch(const Head& head) : unembed(head), leads(kUnembedRows), rows(kUnembedRows) {}
  UnembedScratch unembed;
  std::vector<Lead> leads;        // of the rows still open
  std::vector<std::size_t> rows;  // which rows of the block they are
  std::uint64_t n_logits = 0;
};

struct MarginTest::Impl {
  const Head& head;
  Target target_set;
  PackedMatrix target;  // [d_model, target ids]
  std::vector<TokenId> winner_ids;
  PackedMatrix winners;  // [d_model, winner ids]

  std::uint64_t run(const Question& question, std::size_t n, ConstRows resid, std::span<std::uint8_t> out,
                    Scratch& s) const;
  void find_leads(std::size_t open, Scratch& s) const;
  std::size_t ask_winners(const Question& question, std::size_t open, std::span<std::uint8_t> out,
                          Scratch& s) const;
  void ask_everything(const Question& question, std::size_t open, std::span<std::uint8_t> out,
                      Scratch& s) const;
  template <class IdOf>
  std::size_t drop_refuted(const Question& question, std::size_t open, std::size_t n_columns,
                           std::span<std::uint8_t> out, Scratch& s, IdOf id_of) const;
  ConstRows normed(const Scratch& s) const { return {s.unembed.normed.data(), head.d_model()}; }
};

namespace {
// Ids without those of the target, first mention kept, the last ones dropped beyond a whole strip.
std::vector<TokenId> usable_winners(std::span<const TokenId> ids, std::vector<std::uint8_t> taken) {
  std::vector<TokenId> out;
  for (const TokenId id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= taken.size() || taken[static_cast<std::size_t>(id)])
      continue;
    taken[static_cast<std::size_t>(id)] = 1;
    if (out.size() < kStripPanels * kPanel) out.push_back(id);
  }
  return out;
}
}  // namespace

MarginTest::MarginTest(const Head& head, const Target& target, std::span<const TokenId> usual_winners)
    : impl_(new Impl{head, target, head.w_u.columns(target.ids()), {}, {}}) {
  std::vector<std::uint8_t> is_target(head.d_vocab(), 0);
  for (const TokenId id : target.ids()) is_target[static_cast<std::size_t>(id)] = 1;
  impl_->winner_ids = usable_winners(usual_winners, std::move(is_target));
  impl_->winners = head.w_u.columns(impl_->winner_ids);
}
MarginTest::~MarginTest() = default;
MarginTest::MarginTest(MarginTest&&) noexcept = default;

MarginTest::ScratchPtr MarginTest::make_scratch() const { return ScratchPtr(new Scratch(impl_->head)); }
void MarginTest::ScratchDeleter::operator()(Scratch* scratch) const { delete scratch; }

std::uint64_t MarginTest::at_least(float level, std::size_t n, ConstRows resid, std::span<std::uint8_t> out,
                                   Scratch& scratch) const {
  return impl_->run({false, level}, n, resid, out, scratch);
}
std::uint64_t MarginTest::event(std::size_t n, ConstRows resid, std::span<std::uint8_t> out,
                                Scratch& scratch) const {
  return impl_->run({true, 0.0f}, n, resid, out, scratch);
}

void MarginTest::Impl::find_leads(std::size_t open, Scratch& s) const {
  std::fill(s.leads.begin(), s.leads.end(), Lead{});
  s.n_logits += open * target.n();
  for_each_strip(open, normed(s), target, s.unembed.strip,
                 [&](std::size_t first, std::size_t columns, Rows strip) {
                   for (std::size_t i = 0; i < open; ++i) {
                     const Best best = best_of(columns, strip.row(i));
                     if (s.leads[i].id < 0 || best.value > s.leads[i].value)
                       s.leads[i] = {best.value, target_set.ids()[first + best.index]};
                   }
                 });
}

// Rows refuted by the strip's largest logit are answered and leave; the others close ranks.
template <class IdOf>
std::size_t MarginTest::Impl::drop_refuted(const Question& question, std::size_t open, std::size_t n_columns,
                                           std::span<std::uint8_t> out, Scratch& s, IdOf id_of) const {
  const std::size_t d = head.d_model();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < open; ++i) {
    const Best best = best_of(n_columns, s.unembed.strip.data() + i * kStripPanels * kPanel);
    if (question.refuted(s.leads[i], best.value, id_of(best.index))) {
      out[s.rows[i]] = 0;
      continue;
    }
    if (kept != i) {
      std::copy_n(s.unembed.normed.data() + i * d, d, s.unembed.normed.data() + kept * d);
      s.leads[kept] = s.leads[i];
      s.rows[kept] = s.rows[i];
    }
    ++kept;
  }
  return kept;
}

std::size_t MarginTest::Impl::ask_winners(const Question& question, std::size_t open,
                                          std::span<std::uint8_t> out, Scratch& s) const {
  if (winner_ids.empty()) return open;
  s.n_logits += open * winners.n();
  gemm(open, normed(s), winners, {s.unembed.strip.data(), kStripPanels * kPanel});
  return drop_refuted(question, open, winners.n(), out, s, [&](std::size_t j) { return winner_ids[j]; });
}

void MarginTest::Impl::ask_everything(const Question& question, std::size_t open, std::span<std::uint8_t> out,
                                      Scratch& s) const {
  const PackedMatrix& w = head.w_u;
  const Rows strip{s.unembed.strip.data(), kStripPanels * kPanel};
  for (std::size_t panel = 0; panel < w.n_panels() && open > 0; panel += kStripPanels) {
    const std::size_t count = std::min(kStripPanels, w.n_panels() - panel), first = panel * kPanel;
    const std::size_t columns = std::min(count * kPanel, w.n() - first);
    gemm_panels(open, normed(s), w, panel, count, strip);
    s.n_logits += open * columns;
    for (const TokenId id : target_set.in_range(first, first + columns))
      for (std::size_t i = 0; i < open; ++i) strip.row(i)[static_cast<std::size_t>(id) - first] = kNoLogit;
    open = drop_refuted(question, open, columns, out, s,
                        [&](std::size_t j) { return static_cast<TokenId>(first + j); });
  }
}

std::uint64_t MarginTest::Impl::run(const Question& question, std::size_t n, ConstRows resid,
                                    std::span<std::uint8_t> out, Scratch& s) const {
  s.n_logits = 0;
  for (std::size_t first = 0; first < n; first += kUnembedRows) {
    std::size_t open = std::min(kUnembedRows, n - first);
    head.normalise(open, resid.from(first), {s.unembed.normed.data(), head.d_model()});
    const auto block_out = out.subspan(first, open);
    std::fill(block_out.begin(), block_out.end(), std::uint8_t{1});
    std::iota(s.rows.begin(), s.rows.end(), std::size_t{0});
    find_leads(open, s);
    open = ask_winners(question, open, block_out, s);
    ask_everything(question, open, block_out, s);
  }
  return s.n_logits;
}

}  // namespace deeptail
