#include "estimators/text_paths.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace deeptail {

namespace {

constexpr double kHappened = std::numeric_limits<double>::infinity();

}  // namespace

TextPaths::TextPaths(const Transformer& model, const InputLaw& law, const ContinuationEvent& event,
                     std::size_t n_paths, ThreadPool& pool, GoesOn goes_on)
    : config_(model.config()),
      law_(law),
      event_(event),
      pool_(pool),
      goes_on_(std::move(goes_on)),
      width_(law.facts().max_length + event.sampling().max_tokens),
      decoder_(model, n_paths, width_, pool, constant_prefix(law, pool)),
      tokens_(n_paths * width_),
      paths_(n_paths) {
  for (std::size_t w = 0; w < pool.size(); ++w) laws_.emplace_back(event.sampling(), config_.d_vocab);
}

double TextPaths::bytes(const ModelConfig& config, const InputLaw& law, const SamplingConfig& sampling) {
  const std::size_t width = law.facts().max_length + sampling.max_tokens;
  return static_cast<double>(Decoder::bytes_per_slot(config, width, constant_prefix_length(law)) +
                             24 * width);
}

// What number t of a path draws, and the score of the prefix that it is drawn after.
Decoder::Choice TextPaths::step(std::size_t i, std::size_t t, NextTokenLaw& law, std::uint64_t number) {
  Path& path = paths_[i];
  const SamplingConfig& sampling = event_.sampling();
  const TokenAutomaton& automaton = event_.pattern().automaton;
  const std::uint32_t state = path.states[t];
  const auto next = automaton.next(state);
  const double chance =
      sum_of_values(law.weights_before(), next, event_.tables().outside(sampling.max_tokens - t - 1)) /
      law.total_before();
  path.scores.push_back(std::log(chance));
  const TokenId token = law.draw(number);
  const std::uint32_t to = next[static_cast<std::size_t>(token)];
  path.states.push_back(to);
  const bool limit = t + 1 == sampling.max_tokens;
  path.happened = to == TokenAutomaton::accepted() || (limit && automaton.accepts_at_end(to));
  const bool last =
      limit || sampling.stops(token) || to == TokenAutomaton::accepted() || to == TokenAutomaton::dead();
  return {token, last};
}

void TextPaths::go_on(std::span<const std::uint32_t> who, std::span<const std::size_t> valid,
                      const Number& number) {
  std::vector<Decoder::Text> texts;
  std::vector<std::size_t> from;
  for (std::size_t k = 0; k < who.size(); ++k) {
    const Path& path = paths_[who[k]];
    if (path.happened) continue;  // a copy that has the event already
    texts.push_back({.slot = who[k], .tokens = row(who[k]), .length = path.length, .valid = valid[k]});
    from.push_back(std::min(valid[k], path.length - 1));
  }
  decoder_.run(texts,
               [&](std::size_t k, std::size_t length, std::span<const float> logits, std::size_t worker) {
                 const std::size_t i = texts[k].slot, t = length - paths_[i].prompt;
                 laws_[worker].set(logits);
                 return step(i, t, laws_[worker], number(i, t));
               });
  for (std::size_t k = 0; k < texts.size(); ++k) {
    paths_[texts[k].slot].length = texts[k].length;
    work_.flops += decoding_flops(config_, from[k], std::max(texts[k].length, from[k] + 2) - 1);
  }
}

void TextPaths::sample(std::size_t n, std::uint64_t seed) {
  const Inputs prompts = sample_inputs(law_, seed, 0, n, pool_);
  const TextPattern& pattern = event_.pattern();
  std::vector<std::uint32_t> who(n);
  std::iota(who.begin(), who.end(), 0u);
  for (std::size_t i = 0; i < n; ++i) {
    const auto prompt = prompts.sequence(i);
    std::copy(prompt.begin(), prompt.end(), row(i));
    const std::uint32_t start = pattern.automaton.start(pattern.texts && pattern.texts->nothing_in(prompt));
    paths_[i] = {.prompt = prompt.size(), .length = prompt.size(), .states = {start}};
    paths_[i].happened = start == TokenAutomaton::accepted();
  }
  const RngKey key{seed, Stream::kInputs};
  const std::size_t n_parts = law_.facts().n_parts;
  go_on(who, std::vector<std::size_t>(n, 0), [&](std::size_t i, std::size_t t) {
    return uniform64(key, i, static_cast<std::uint32_t>(n_parts + t));
  });
  work_.forwards += n;
}

void TextPaths::maxima(std::span<double> out) const {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = -kHappened;
    for (const double score : paths_[i].scores) out[i] = std::max(out[i], score);
    if (paths_[i].happened) out[i] = kHappened;
  }
}

bool TextPaths::branch(std::span<const PathBranch> branches, double level, std::size_t number,
                       std::uint64_t seed) {
  std::vector<std::uint32_t> who;
  std::vector<std::size_t> valid;
  for (const auto& [to, from] : branches) {
    const Path& parent = paths_[from];
    const auto above =
        std::find_if(parent.scores.begin(), parent.scores.end(), [&](double s) { return s > level; });
    const auto t =
        static_cast<std::size_t>(above - parent.scores.begin());  // all of them: the event is the first
    const bool whole = above == parent.scores.end();
    Path child{.prompt = parent.prompt, .length = parent.prompt + t};
    child.states.assign(parent.states.begin(), parent.states.begin() + static_cast<std::ptrdiff_t>(t + 1));
    child.scores.assign(parent.scores.begin(), above);
    child.happened = whole && parent.happened;
    std::copy_n(row(from), child.length, row(to));
    const std::size_t keys = std::min(decoder_.valid(from), child.length);
    decoder_.copy(from, to, keys);
    who.push_back(to);
    valid.push_back(keys);
    paths_[to] = std::move(child);
  }
  const RngKey key{seed, Stream::kMoves};
  go_on(who, valid, [&](std::size_t i, std::size_t t) {
    return uniform64(key, step_index(0, number, i), static_cast<std::uint32_t>(t));
  });
  work_.rescored += branches.size();
  return goes_on_(work_);
}

std::vector<Trigger> TextPaths::triggers(std::size_t most) const {
  std::vector<Trigger> out;
  for (std::size_t i = 0; i < paths_.size() && out.size() < most; ++i) {
    if (!paths_[i].happened) continue;
    const TokenId* first = tokens_.data() + i * width_;
    Trigger& t = out.emplace_back();
    t.tokens.assign(first, first + paths_[i].prompt);
    t.answer.assign(first + paths_[i].prompt, first + paths_[i].length);
  }
  return out;
}

}  // namespace deeptail
