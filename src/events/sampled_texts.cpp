#include "events/sampled_texts.h"

#include <algorithm>
#include <utility>

namespace deeptail {

namespace {

// Rows that are decoded side by side: enough for products to be quick, few enough for their keys to stay near.
constexpr std::size_t kRowsAtOnce = 256;

template <class T>
void copy_rows(const std::vector<T>& from, std::size_t i, std::vector<T>& to, std::size_t j,
               std::size_t width) {
  std::copy_n(from.data() + i * width, width, to.data() + j * width);
}

std::size_t longest_text(const InputLaw& law, const SamplingConfig& sampling) {
  return law.facts().max_length + sampling.max_tokens;
}

}  // namespace

void TextRows::resize(std::size_t n, std::size_t row_width, std::size_t n_numbers) {
  width = row_width;
  tokens.resize(n * row_width);
  prompt.resize(n);
  length.resize(n);
  numbers.resize(n * n_numbers);
}

SampledTexts::SampledTexts(const Transformer& model, const InputLaw& law, const SamplingConfig& sampling,
                           std::size_t max_held, ThreadPool& pool)
    : config_(model.config()),
      sampling_(sampling),
      width_(longest_text(law, sampling)),
      n_numbers_(sampling.greedy ? 0 : sampling.max_tokens),
      n_scratch_(kRowsAtOnce),
      decoder_(model, max_held + kRowsAtOnce, width_, pool, constant_prefix(law, pool)),
      held_slot_(max_held),
      scratch_(kRowsAtOnce) {
  laws_.assign(pool.size(), NextTokenLaw(sampling, config_.d_vocab));
  held_.resize(max_held, width_, n_numbers_);
  for (std::size_t i = 0; i < max_held; ++i) held_slot_[i] = i;
  for (std::size_t i = 0; i < n_scratch_; ++i) scratch_[i] = max_held + i;
}

std::size_t SampledTexts::rows_at_once() { return kRowsAtOnce; }

ScorerBytes SampledTexts::bytes(const ModelConfig& config, const InputLaw& law,
                                const SamplingConfig& sampling) {
  const std::size_t width = longest_text(law, sampling);
  const double row = static_cast<double>(width * sizeof(TokenId) + sampling.max_tokens * sizeof(std::uint64_t));
  return {.scored = row,
          .held = row + static_cast<double>(
                            Decoder::bytes_per_slot(config, width, constant_prefix_length(law)))};
}

void SampledTexts::set(const EventInputs& inputs) {
  const std::size_t n = inputs.inputs.size();
  rows_.resize(n, width_, n_numbers_);
  first_step_.assign(n, 0);
  valid_.assign(n, 0);
  same_.assign(n, 0);
  held_of_.resize(n);
  copies_ = false;
  for (std::size_t i = 0; i < n; ++i) {
    const auto input = inputs.inputs.sequence(i);
    std::copy(input.begin(), input.end(), rows_.tokens.data() + i * width_);
    rows_.prompt[i] = rows_.length[i] = static_cast<std::uint32_t>(input.size());
    held_of_[i] = static_cast<std::uint32_t>(i);
  }
  std::copy_n(inputs.numbers.data(), n * n_numbers_, rows_.numbers.data());
}

// The first `length` tokens of the held text, of which the slot has the keys but for the last drawn one's.
void SampledTexts::copy_held_row(std::size_t row, std::size_t held, std::size_t length) {
  std::copy_n(held_.tokens.data() + held * width_, length, rows_.tokens.data() + row * width_);
  rows_.length[row] = static_cast<std::uint32_t>(length);
}

void SampledTexts::set_changed(const Proposals& p) {
  set(p.changed);
  copies_ = true;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::size_t h = held_of_[i] = p.held[i];
    const bool same_input =
        p.first_changed[i] >= rows_.prompt[i] && rows_.prompt[i] == held_.prompt[h];
    if (!same_input) {
      valid_[i] = std::min(p.first_changed[i], rows_.prompt[i]);
      continue;
    }
    const std::uint64_t* now = rows_.numbers.data() + i * n_numbers_;
    const std::uint64_t* before = held_.numbers.data() + h * n_numbers_;
    const auto steps = static_cast<std::size_t>(std::mismatch(now, now + n_numbers_, before).first - now);
    same_[i] = steps >= held_.steps(h);
    first_step_[i] = static_cast<std::uint32_t>(std::min(steps, held_.steps(h)));
    copy_held_row(i, h, held_.prompt[h] + first_step_[i]);
    valid_[i] = rows_.length[i];
  }
}

Decoder::Choice SampledTexts::next(std::size_t row, std::size_t t, const NextTokenLaw& law) const {
  const TokenId token =
      sampling_.greedy ? law.most_likely() : law.draw(rows_.numbers[row * n_numbers_ + t]);
  return {token, t + 1 == sampling_.max_tokens || sampling_.stops(token)};
}

double SampledTexts::run_rows(std::size_t first, std::size_t n, const Step& step) {
  texts_.clear();
  row_of_.clear();
  for (std::size_t i = first; i < first + n; ++i) {
    if (same_[i] != 0) continue;
    const std::size_t slot = scratch_[i - first];
    std::size_t valid = valid_[i];
    if (copies_) {
      const std::size_t from = held_slot_[held_of_[i]];
      valid = std::min(valid, decoder_.valid(from));
      decoder_.copy(from, slot, valid);
    }
    texts_.push_back({slot, rows_.tokens.data() + i * width_, rows_.length[i], valid});
    row_of_.push_back(i);
  }
  calls_.assign(texts_.size(), 0);
  decoder_.run(texts_, [&](std::size_t text, std::size_t length, std::span<const float> logits,
                           std::size_t worker) -> Decoder::Choice {
    const std::size_t row = row_of_[text];
    ++calls_[text];
    NextTokenLaw& law = laws_[worker];
    law.set(logits);
    return step(row, length - rows_.prompt[row], law);
  });
  double flops = 0.0;
  for (std::size_t k = 0; k < texts_.size(); ++k) {
    const std::size_t row = row_of_[k], begin = rows_.length[row];
    flops += decoding_flops(config_, std::min<std::size_t>(texts_[k].valid, begin - 1),
                            begin - 1 + calls_[k]);
    rows_.length[row] = static_cast<std::uint32_t>(texts_[k].length);
  }
  return flops;
}

double SampledTexts::decode(const Step& step, const Done& done) {
  double flops = 0.0;
  for (std::size_t first = 0; first < rows_.size(); first += n_scratch_) {
    const std::size_t n = std::min(n_scratch_, rows_.size() - first);
    first_in_work_ = first;
    flops += run_rows(first, n, step);
    if (done) done(first, n);
  }
  return flops;
}

double SampledTexts::decode(const Done& done) {
  return decode([this](std::size_t row, std::size_t t, const NextTokenLaw& law) { return next(row, t, law); },
                done);
}

void SampledTexts::keep(std::size_t row) {
  const std::size_t h = held_of_[row];
  copy_rows(rows_.numbers, row, held_.numbers, h, n_numbers_);
  if (same_[row] != 0) return;
  std::swap(held_slot_[h], scratch_[row - first_in_work_]);
  copy_rows(rows_.tokens, row, held_.tokens, h, width_);
  held_.prompt[h] = rows_.prompt[row];
  held_.length[h] = rows_.length[row];
}

double SampledTexts::branch(std::span<Branch> branches, const BranchStep& step) {
  texts_.clear();
  for (const Branch& b : branches) {
    const std::size_t slot = scratch_[b.row - first_in_work_];
    texts_.push_back({slot, b.tokens, b.length, std::min(b.length, decoder_.valid(slot))});
  }
  calls_.assign(texts_.size(), 0);
  decoder_.run(texts_, [&](std::size_t text, std::size_t length, std::span<const float> logits,
                           std::size_t worker) -> Decoder::Choice {
    ++calls_[text];
    NextTokenLaw& law = laws_[worker];
    law.set(logits);
    return step(text, length, law);
  });
  double flops = 0.0;
  for (std::size_t k = 0; k < texts_.size(); ++k) {
    const std::size_t begin = branches[k].length;
    flops += decoding_flops(config_, std::min(texts_[k].valid, begin - 1), begin - 1 + calls_[k]);
    branches[k].length = texts_[k].length;
  }
  return flops;
}

}  // namespace deeptail
