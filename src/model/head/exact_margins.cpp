// Margins to the last bit without all logits: the target's, the usual winners', and those that a screen leaves open above
// the best of these.
#include <algorithm>
#include <cmath>

#include "model/head/margin_test.h"

namespace deeptail {

// Of the usual winners.
void MarginTest::Impl::best_winners(std::size_t n, std::span<Other> best, Scratch& s) const {
  s.n_logits += n * winners.n();
  for_each_strip(n, normed(s), winners, s.unembed.strip,
                 [&](std::size_t first, std::size_t columns, Rows strip) {
                   for (std::size_t i = 0; i < n; ++i)
                     for (std::size_t c = 0; c < columns; ++c)
                       best[i].challenge(strip.row(i)[c], winner_ids[first + c]);
                 });
}

// Those that the screen leaves open: in any order first, and exactly where that does not leave them behind.
void MarginTest::Impl::best_of_strip(std::size_t row, std::size_t panel, std::size_t count, Other& best,
                                     Scratch& s) const {
  const Screen::Tables& t = screen->tables();
  const std::size_t n = open_places(s.bits.data() + row * count, panel, count, s);
  if (n == 0) return;
  const float* x = normed(s).row(row);
  row_dots(n, s.columns.data(), t.d, 1, {x, t.d}, {s.values.data(), n});
  s.n_logits += n;
  for (std::size_t j = 0; j < n; ++j) {
    const std::size_t place = s.places[j];
    const double most = s.values[j] + t.bias[place] + s.screened->logit_error(row, place);
    if (most < best.value) continue;
    best.challenge(exact_logit(x, t.ids[place]), t.ids[place]);
  }
}

std::uint64_t MarginTest::Impl::margins_of_block(std::size_t n, ConstRows resid, std::span<Margin> out,
                                                 Scratch& s) const {
  s.n_logits = 0;
  head.normalise(n, resid, {s.unembed.normed.data(), head.d_model()});
  find_leads(n, s);
  std::vector<Other> best(n);
  best_winners(n, best, s);
  for (std::size_t i = 0; i < n; ++i) s.ceiling[i] = best[i].value;
  s.screened->prepare(n, normed(s), s.ceiling);
  const std::size_t n_panels = screen->tables().columns.n_panels();
  for (std::size_t panel = 0; panel < n_panels; panel += kStripPanels) {
    const std::size_t count = std::min(kStripPanels, n_panels - panel);
    s.screened->screen(n, panel, count, s.bits.data());
    for (std::size_t i = 0; i < n; ++i)
      if (s.screened->bounded(i)) best_of_strip(i, panel, count, best[i], s);
  }
  for (std::size_t i = 0; i < n; ++i) out[i] = {s.leads[i].value - best[i].value, s.leads[i].id, best[i].id};
  // Numbers that are not finite, or nearly so, have no bounds.
  for (std::size_t i = 0; i < n; ++i) {
    if (s.screened->bounded(i) && std::isfinite(s.leads[i].value) && std::isfinite(best[i].value)) continue;
    ThreadPool alone(1);
    deeptail::margins(head, target_set, 1, resid.from(i), alone, out.subspan(i, 1));
    s.n_logits += head.d_vocab();
  }
  return s.n_logits;
}

std::uint64_t MarginTest::margins(std::size_t n, ConstRows resid, std::span<Margin> out,
                                  Scratch& scratch) const {
  const Impl& m = *impl_;
  if (m.screen == nullptr) {
    ThreadPool alone(1);
    deeptail::margins(m.head, m.target_set, n, resid, alone, out);
    return n * m.head.d_vocab();
  }
  std::uint64_t logits = 0;
  for (std::size_t first = 0; first < n; first += kUnembedRows) {
    const std::size_t some = std::min(kUnembedRows, n - first);
    logits += m.margins_of_block(some, resid.from(first), out.subspan(first, some), scratch);
  }
  return logits;
}

}  // namespace deeptail
