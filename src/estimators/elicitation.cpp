// Teacher forcing along one way to write a text in tokens.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/memory.h"
#include "deeptail/forecast.h"

namespace deeptail {

namespace {

constexpr std::size_t kPromptsAtOnce = 256;

// The tokens of a text that follows other text.
std::vector<TokenId> tokens_after_text(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<TokenId> before = tokenizer.encode("a"), all = tokenizer.encode("a" + std::string(text));
  if (all.size() <= before.size() || !std::equal(before.begin(), before.end(), all.begin())) return {};
  return {all.begin() + static_cast<std::ptrdiff_t>(before.size()), all.end()};
}

TokenTexts texts_of_model(const LoadedModel& model) {
  if (!model.tokenizer) throw InputError("model {} has no tokenizer, so its tokens have no text", model.name);
  return token_texts(model.tokenizer->tokenizer, model.config().d_vocab);
}

// One prompt on its way.
struct Forced {
  std::uint32_t state = 0;
  double path = 1.0;  // the chance of the tokens so far
  double said = 0.0, left_out = 0.0;
  bool of_text = false;
};

}  // namespace

struct Elicitation::State {
  State(const LoadedModel& model, std::string_view text, SamplingConfig config, std::size_t longest_prompt,
        ThreadPool& pool)
      : sampling(std::move(config)),
        texts(texts_of_model(model)),
        automaton(starts_with(text), texts, sampling.stop),
        usual(tokens_after_text(model.tokenizer->tokenizer, text)),
        usual_first(model.tokenizer->tokenizer.encode(text)),
        width(longest_prompt + text.size()) {
    const ModelConfig& c = model.config();
    sampling.validate(c.d_vocab);
    const std::size_t needed = std::max<std::size_t>({usual.size(), usual_first.size(), 1});
    if (longest_prompt + needed > c.n_ctx)
      throw InputError("prompts of {} tokens and {} more: expected at most {}, the model's n_ctx",
                       longest_prompt, needed, c.n_ctx);
    width = std::min(width, c.n_ctx);
    const double slot = static_cast<double>(Decoder::bytes_per_slot(c, width));
    const auto at_once =
        std::clamp<std::size_t>(static_cast<std::size_t>(0.25 * memory_limit() / slot), 1, kPromptsAtOnce);
    decoder = std::make_unique<Decoder>(model.transformer, at_once, width, pool);
    for (std::size_t w = 0; w < pool.size(); ++w) laws.emplace_back(sampling, c.d_vocab);
  }

  Decoder::Choice step(Forced& text, std::size_t t, NextTokenLaw& law) const;

  SamplingConfig sampling;
  TokenTexts texts;
  TokenAutomaton automaton;
  std::vector<TokenId> usual, usual_first;  // after other text, and where a text begins
  std::size_t width;
  std::unique_ptr<Decoder> decoder;
  std::vector<NextTokenLaw> laws;  // [worker]
  double all_said = 0.0, all_left_out = 0.0;
};

// Adds what completes the text here, and goes on with the token that the tokenizer would write, or else the most
// likely one.
Decoder::Choice Elicitation::State::step(Forced& text, std::size_t t, NextTokenLaw& law) const {
  const std::span<const std::uint32_t> next = automaton.next(text.state);
  const std::span<const float> weights = law.weights();
  double said = 0.0, alive = 0.0;
  TokenId likely = kEndOfText;
  for (std::size_t v = 0; v < weights.size(); ++v) {
    if (next[v] == TokenAutomaton::dead()) continue;
    if (next[v] == TokenAutomaton::accepted()) {
      said += static_cast<double>(weights[v]);
      continue;
    }
    alive += static_cast<double>(weights[v]);
    if (likely == kEndOfText || weights[v] > weights[static_cast<std::size_t>(likely)])
      likely = static_cast<TokenId>(v);
  }
  text.said += text.path * said / law.total();
  const std::vector<TokenId>& path = text.of_text ? usual_first : usual;
  TokenId token = likely;
  if (t < path.size()) {
    const std::uint32_t state = next[static_cast<std::size_t>(path[t])];
    if (state != TokenAutomaton::dead() && state != TokenAutomaton::accepted()) token = path[t];
  }
  const double p = token == kEndOfText ? 0.0 : law.p(token);
  text.left_out += text.path * std::max(0.0, alive / law.total() - p);
  if (!(p > 0.0)) return {};
  text.path *= p;
  text.state = next[static_cast<std::size_t>(token)];
  return {token};
}

Elicitation::Elicitation(const LoadedModel& model, std::string_view text, SamplingConfig sampling,
                         std::size_t longest_prompt, ThreadPool& pool)
    : state_(std::make_unique<State>(model, text, std::move(sampling), longest_prompt, pool)) {}
Elicitation::~Elicitation() = default;

void Elicitation::log_chances(const Inputs& prompts, std::span<double> out) {
  State& s = *state_;
  const std::size_t at_once = s.decoder->n_slots(), width = s.decoder->max_length();
  std::vector<TokenId> tokens(at_once * width);
  for (std::size_t first = 0; first < out.size(); first += at_once) {
    const std::size_t n = std::min(at_once, out.size() - first);
    std::vector<Decoder::Text> texts(n);
    std::vector<Forced> forced(n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto prompt = prompts.sequence(first + i);
      TokenId* row = tokens.data() + i * width;
      std::copy(prompt.begin(), prompt.end(), row);
      texts[i] = {.slot = i, .tokens = row, .length = prompt.size()};
      forced[i].of_text = s.texts.nothing_in(prompt);
      forced[i].state = s.automaton.start(forced[i].of_text);
    }
    const auto choose = [&](std::size_t i, std::size_t length, std::span<const float> logits,
                            std::size_t worker) -> Decoder::Choice {
      s.laws[worker].set(logits);
      return s.step(forced[i], length - prompts.sequence(first + i).size(), s.laws[worker]);
    };
    s.decoder->run(texts, choose);
    for (std::size_t i = 0; i < n; ++i) {
      out[first + i] = std::log(std::min(1.0, forced[i].said));
      s.all_said += forced[i].said;
      s.all_left_out += forced[i].left_out;
    }
  }
}

double Elicitation::left_out() const {
  return state_->all_left_out == 0.0 ? 0.0 : state_->all_left_out / state_->all_said;
}

}  // namespace deeptail
