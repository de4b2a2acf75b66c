// Inside MarginTest: decisions (margin_test.cpp) and margins themselves (exact_margins.cpp) share their scratch, the target
// and the usual winners.
#pragma once

#include <cmath>
#include <optional>

#include "model/head/screen.h"
#include "model/head/unembed.h"

namespace deeptail {

struct MarginTest::Lead {
  float value = 0.0f;  // best target logit
  TokenId id = -1;
};

// What is asked of a margin.
struct MarginTest::Question {
  bool event;   // is the argmax in the target?
  float level;  // else: is the margin at least this?

  // Whether this one other logit settles it against the row; NaN always does, as it does in margins().
  bool refuted(const Lead& lead, float other, TokenId other_id) const {
    if (!event) return !(lead.value - other >= level);
    return !(other < lead.value || (other == lead.value && lead.id < other_id));
  }
  // No logit below this refutes: then lead - other >= level holds before rounding, hence after it.
  double ceiling(const Lead& lead) const {
    if (event) return static_cast<double>(lead.value);
    const double exact = static_cast<double>(lead.value) - static_cast<double>(level);
    return exact - std::abs(exact) * 0x1p-50;
  }
};

struct MarginTest::Scratch {
  Scratch(const Head& head, const Screen* screen)
      : unembed(head), leads(kUnembedRows), rows(kUnembedRows), ceiling(kUnembedRows) {
    if (screen == nullptr) return;
    screened.emplace(screen->tables(), kUnembedRows);
    bits.resize(kUnembedRows * kStripPanels);
    places.resize(kStripPanels * kPanel), columns.resize(places.size()), values.resize(places.size());
  }
  UnembedScratch unembed;
  std::vector<Lead> leads;        // of the rows still open
  std::vector<std::size_t> rows;  // which rows of the block they are
  std::uint64_t n_logits = 0;

  std::vector<double> ceiling;  // [kUnembedRows]
  std::optional<ScreenedRows> screened;
  std::vector<std::uint16_t> bits;  // [kUnembedRows, kStripPanels]
  // What the screen leaves open in one row and strip.
  std::vector<std::size_t> places;
  std::vector<const float*> columns;
  std::vector<float> values;
};

struct MarginTest::Impl {
  const Head& head;
  const Screen* screen;
  Target target_set;
  PackedMatrix target;  // [d_model, target ids]
  std::vector<TokenId> winner_ids;
  PackedMatrix winners;                 // [d_model, winner ids]
  std::vector<std::uint8_t> is_target;  // [d_vocab]

  std::uint64_t run(const Question& question, std::size_t n, ConstRows resid, std::span<std::uint8_t> out,
                    Scratch& s) const;
  void find_leads(std::size_t open, Scratch& s) const;
  std::size_t ask_winners(const Question& question, std::size_t open, std::span<std::uint8_t> out,
                          Scratch& s) const;
  void ask_everything(const Question& question, std::size_t open, std::span<std::uint8_t> out,
                      Scratch& s) const;
  void ask_screened(const Question& question, std::size_t open, std::span<std::uint8_t> out,
                    Scratch& s) const;
  bool refuted_in_strip(const Question& question, std::size_t row, std::size_t panel, std::size_t count,
                        Scratch& s) const;
  float exact_logit(const float* x, TokenId id) const;
  // The best other logit, so far.
  struct Other {
    float value = kNoLogit;
    TokenId id = -1;
    void challenge(float candidate, TokenId candidate_id) {
      if (candidate > value || (candidate == value && candidate_id < id))
        value = candidate, id = candidate_id;
    }
  };
  std::uint64_t margins_of_block(std::size_t n, ConstRows resid, std::span<Margin> out, Scratch& s) const;
  void best_winners(std::size_t n, std::span<Other> best, Scratch& s) const;
  void best_of_strip(std::size_t row, std::size_t panel, std::size_t count, Other& best, Scratch& s) const;
  std::size_t open_places(const std::uint16_t* bits, std::size_t panel, std::size_t count, Scratch& s) const;
  template <class Refuted>
  std::size_t drop_refuted(std::size_t open, std::span<std::uint8_t> out, Scratch& s, bool screened,
                           Refuted refuted) const;
  ConstRows normed(const Scratch& s) const { return {s.unembed.normed.data(), head.d_model()}; }
};

}  // namespace deeptail
