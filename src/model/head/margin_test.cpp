// "Is the margin at least this?", with as few logits as it takes.
//
// A row fails as soon as one other logit o gives best_target - o < level (in fp32, as margins() subtracts);
// the subtraction is monotone in o, so the largest o decides exactly as any witness does. A row passes only
// after the whole vocabulary has had its say.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "model/head/float_level.h"
#include "model/head/margin_test.h"

namespace deeptail {

namespace {

// Columns of the usual winners. A screen costs less per column than they do, so few are worth asking first.
constexpr std::size_t kWinners = kStripPanels * kPanel, kWinnersBeforeScreen = 64;

// Ids without those of the target, first mention kept.
std::vector<TokenId> usable_winners(std::span<const TokenId> ids, std::vector<std::uint8_t> taken,
                                    std::size_t most) {
  std::vector<TokenId> out;
  for (const TokenId id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= taken.size() || taken[static_cast<std::size_t>(id)])
      continue;
    taken[static_cast<std::size_t>(id)] = 1;
    if (out.size() < most) out.push_back(id);
  }
  return out;
}

}  // namespace

MarginTest::MarginTest(const Head& head, const Target& target, std::span<const TokenId> usual_winners,
                       const Screen* screen)
    : impl_(new Impl{head, screen, target, head.w_u.columns(target.ids()), {}, {}, {}}) {
  impl_->is_target.assign(head.d_vocab(), 0);
  for (const TokenId id : target.ids()) impl_->is_target[static_cast<std::size_t>(id)] = 1;
  if (usual_winners.empty() && screen != nullptr) usual_winners = screen->usual_winners();
  impl_->winner_ids =
      usable_winners(usual_winners, impl_->is_target, screen == nullptr ? kWinners : kWinnersBeforeScreen);
  impl_->winners = head.w_u.columns(impl_->winner_ids);
}
MarginTest::~MarginTest() = default;
MarginTest::MarginTest(MarginTest&&) noexcept = default;

MarginTest::ScratchPtr MarginTest::make_scratch() const {
  return ScratchPtr(new Scratch(impl_->head, impl_->screen));
}
void MarginTest::ScratchDeleter::operator()(Scratch* scratch) const { delete scratch; }

std::uint64_t MarginTest::at_least(double level, std::size_t n, ConstRows resid, std::span<std::uint8_t> out,
                                   Scratch& scratch) const {
  return impl_->run({false, float_level(level)}, n, resid, out, scratch);
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

// Rows for which refuted(row) holds are answered and leave; the others close ranks.
template <class Refuted>
std::size_t MarginTest::Impl::drop_refuted(std::size_t open, std::span<std::uint8_t> out, Scratch& s,
                                           bool screened, Refuted refuted) const {
  const std::size_t d = head.d_model();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < open; ++i) {
    if (refuted(i)) {
      out[s.rows[i]] = 0;
      continue;
    }
    if (kept != i) {
      std::copy_n(s.unembed.normed.data() + i * d, d, s.unembed.normed.data() + kept * d);
      s.leads[kept] = s.leads[i];
      s.rows[kept] = s.rows[i];
      if (screened) s.screened->move(i, kept);
    }
    ++kept;
  }
  return kept;
}

std::size_t MarginTest::Impl::ask_winners(const Question& question, std::size_t open,
                                          std::span<std::uint8_t> out, Scratch& s) const {
  const Rows strip{s.unembed.strip.data(), kStripPanels * kPanel};
  // The first few settle most rows.
  for (std::size_t panel = 0, count = 1; panel < winners.n_panels() && open > 0; panel += count, count *= 4) {
    count = std::min(count, winners.n_panels() - panel);
    const std::size_t first = panel * kPanel, columns = std::min(count * kPanel, winners.n() - first);
    gemm_panels(open, normed(s), winners, panel, count, strip);
    s.n_logits += open * columns;
    open = drop_refuted(open, out, s, false, [&](std::size_t i) {
      const Best best = best_of(columns, strip.row(i));
      return question.refuted(s.leads[i], best.value, winner_ids[first + best.index]);
    });
  }
  return open;
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
    open = drop_refuted(open, out, s, false, [&](std::size_t i) {
      const Best best = best_of(columns, strip.row(i));
      return question.refuted(s.leads[i], best.value, static_cast<TokenId>(first + best.index));
    });
  }
}

void MarginTest::Impl::ask_screened(const Question& question, std::size_t open, std::span<std::uint8_t> out,
                                    Scratch& s) const {
  for (std::size_t i = 0; i < open; ++i) s.ceiling[i] = question.ceiling(s.leads[i]);
  s.screened->prepare(open, normed(s), s.ceiling);
  const std::size_t n_panels = screen->tables().columns.n_panels();
  for (std::size_t panel = 0; panel < n_panels && open > 0; panel += kStripPanels) {
    const std::size_t count = std::min(kStripPanels, n_panels - panel);
    s.screened->screen(open, panel, count, s.bits.data());
    // drop_refuted moves a row only after it has been looked at, so bits keep their rows.
    open = drop_refuted(open, out, s, true,
                        [&](std::size_t i) { return refuted_in_strip(question, i, panel, count, s); });
  }
}

// Of one row and strip, without the target's: s.places and s.columns. Returns how many.
std::size_t MarginTest::Impl::open_places(const std::uint16_t* bits, std::size_t panel, std::size_t count,
                                          Scratch& s) const {
  const Screen::Tables& t = screen->tables();
  std::size_t n = 0;
  for (std::size_t p = 0; p < count; ++p)
    for (unsigned b = bits[p]; b != 0; b &= b - 1) {
      const std::size_t place = (panel + p) * kPanel + static_cast<std::size_t>(std::countr_zero(b));
      // A row without bounds has the bits of the last panel's padding set, too.
      if (place >= t.ids.size() || is_target[static_cast<std::size_t>(t.ids[place])]) continue;
      s.places[n] = place;
      s.columns[n++] = t.w.data() + place * t.d;
    }
  return n;
}

// The columns that the screen leaves open: fp32 products in any order first, with their own error bound; the
// exact chain only where that leaves the answer open.
bool MarginTest::Impl::refuted_in_strip(const Question& question, std::size_t row, std::size_t panel,
                                        std::size_t count, Scratch& s) const {
  const Screen::Tables& t = screen->tables();
  const std::size_t n = open_places(s.bits.data() + row * count, panel, count, s);
  if (n == 0) return false;
  const float* x = normed(s).row(row);
  row_dots(n, s.columns.data(), t.d, 1, {x, t.d}, {s.values.data(), n});
  s.n_logits += n;
  for (std::size_t j = 0; j < n; ++j) {
    const std::size_t place = s.places[j];
    const float value = s.values[j] + t.bias[place];
    if (value < s.screened->clear_below(row)) continue;
    const TokenId id = t.ids[place];
    const double error = s.screened->logit_error(row, place);
    if (error < INFINITY) {  // refuted() is monotone in the logit, so the ends of the interval decide
      const auto high = std::nextafter(static_cast<float>(value + error), INFINITY),
                 low = std::nextafter(static_cast<float>(value - error), -INFINITY);
      if (!question.refuted(s.leads[row], high, id)) continue;
      if (question.refuted(s.leads[row], low, id)) return true;
    }
    if (question.refuted(s.leads[row], exact_logit(x, id), id)) return true;
  }
  return false;
}

float MarginTest::Impl::exact_logit(const float* x, TokenId id) const {
  const auto column = static_cast<std::size_t>(id);
  float logits_of_panel[kPanel];
  gemm_panels(1, {x, head.d_model()}, head.w_u, column / kPanel, 1, {logits_of_panel, kPanel});
  return logits_of_panel[column % kPanel];
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
    if (screen != nullptr && std::isfinite(question.level))
      ask_screened(question, open, block_out, s);
    else
      ask_everything(question, open, block_out, s);
  }
  return s.n_logits;
}

}  // namespace deeptail
