// From residuals to the vocabulary, in strips of columns that stay in cache.
#pragma once

#include <algorithm>
#include <limits>

#include "deeptail/model.h"

namespace deeptail {

inline constexpr std::size_t kUnembedRows = 96;  // rows of one block of work
inline constexpr float kNoLogit = -std::numeric_limits<float>::infinity();
inline constexpr std::size_t kStripPanels = 32;  // panels of one strip: 512 columns

struct UnembedScratch {
  explicit UnembedScratch(const Head& head)
      : normed(kUnembedRows * head.d_model()), strip(kUnembedRows * kStripPanels * kPanel) {}
  AlignedVector<float> normed;  // [kUnembedRows, d_model] after ln_final
  AlignedVector<float> strip;   // [kUnembedRows, 512] logits
};

// Calls use(first_column, n_columns, logits: [n, n_columns]) for strips of w.
template <class Use>
void for_each_strip(std::size_t n, ConstRows normed, const PackedMatrix& w, AlignedVector<float>& strip,
                    Use use) {
  const Rows out{strip.data(), kStripPanels * kPanel};
  for (std::size_t panel = 0; panel < w.n_panels(); panel += kStripPanels) {
    const std::size_t count = std::min(kStripPanels, w.n_panels() - panel);
    gemm_panels(n, normed, w, panel, count, out);
    use(panel * kPanel, std::min(count * kPanel, w.n() - panel * kPanel), out);
  }
}

// Runs body(first_row, n_rows, normed rows, scratch) over blocks of residuals.
template <class Body>
void for_each_row_block(const Head& head, std::size_t n, ConstRows resid, ThreadPool& pool, Body body) {
  std::vector<std::unique_ptr<UnembedScratch>> scratch(pool.size());
  pool.for_each_block((n + kUnembedRows - 1) / kUnembedRows, [&](std::size_t block, std::size_t worker) {
    if (!scratch[worker]) scratch[worker] = std::make_unique<UnembedScratch>(head);
    const std::size_t first = block * kUnembedRows, rows = std::min(kUnembedRows, n - first);
    const Rows normed{scratch[worker]->normed.data(), head.d_model()};
    head.normalise(rows, resid.from(first), normed);
    body(first, rows, ConstRows(normed), *scratch[worker]);
  });
}

}  // namespace deeptail
