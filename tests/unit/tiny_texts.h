// Questions about sampled texts that are small enough to be answered exactly: random models of eight tokens, eight prompts,
// all continuations enumerated.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "deeptail/continuation.h"
#include "deeptail/law.h"
#include "unit/tiny_llama.h"

namespace deeptail {

inline constexpr std::size_t kTinyVocab = 8;
inline constexpr TokenId kTinyStop = 7;
inline const std::vector<std::string> kTinyTexts = {"a", "b", "c", "d", "ab", " ", "bc", ""};

// Random weights in TransformerLens's form, one layer, or in Llama's.
class TinyModel {
 public:
  TinyModel(bool llama, unsigned seed)
      : tensors_(seed), model_(llama ? TinyLlama{.vocab = kTinyVocab}.made(tensors_) : made()) {}
  const Transformer& model() const { return model_; }

 private:
  static constexpr std::int64_t kWidth = 8, kHidden = 16, kContext = 16, kVocab = kTinyVocab;

  Transformer made() {
    tensors_.put("embed.W_E", {kVocab, kWidth}, 1.0);
    tensors_.put("pos_embed.W_pos", {kContext, kWidth}, 0.3);
    for (const char* ln : {"blocks.0.ln1", "blocks.0.ln2", "ln_final"}) {
      tensors_.put(std::string(ln) + ".w", {kWidth}, 0.1, 1.0);
      tensors_.put(std::string(ln) + ".b", {kWidth}, 0.1);
    }
    const std::string at = "blocks.0.attn.", mlp = "blocks.0.mlp.";
    for (const char* m : {"Q", "K", "V"}) tensors_.put(at + "W_" + m, {2, kWidth, 4}, 0.6);
    for (const char* m : {"Q", "K", "V"}) tensors_.put(at + "b_" + m, {2, 4}, 0.1);
    tensors_.put(at + "W_O", {2, 4, kWidth}, 0.6);
    tensors_.put(at + "b_O", {kWidth}, 0.1);
    tensors_.put(mlp + "W_in", {kWidth, kHidden}, 0.5);
    tensors_.put(mlp + "b_in", {kHidden}, 0.1);
    tensors_.put(mlp + "W_out", {kHidden, kWidth}, 0.5);
    tensors_.put(mlp + "b_out", {kWidth}, 0.1);
    tensors_.put("unembed.W_U", {kWidth, kVocab}, 0.5);
    return Transformer::from_tensors({.model_name = "tiny",
                                      .n_layers = 1,
                                      .d_model = kWidth,
                                      .n_heads = 2,
                                      .d_head = 4,
                                      .d_mlp = kHidden,
                                      .n_ctx = kContext,
                                      .d_vocab = kVocab,
                                      .tokenizer_file = ""},
                                     tensors_.map(), "tiny");
  }

  RandomTensors tensors_;
  Transformer model_;
};

// Eight prompts of two or three tokens, each as likely as the others: one part.
class TinyPrompts final : public InputLaw {
 public:
  static constexpr std::size_t kCount = 8;
  TinyPrompts()
      : facts_{.name = "tiny prompts", .sha256 = "", .d_vocab = kTinyVocab, .n_parts = 1, .max_length = 3} {}
  const LawFacts& facts() const override { return facts_; }
  std::size_t first_position(std::size_t) const override { return 0; }
  void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool&) const override {
    out.resize(parts.size(), 3);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::vector<TokenId> p = prompt(parts[i] >> 61);
      std::fill(std::copy(p.begin(), p.end(), out.row(i).begin()), out.row(i).end(), 0);
      out.lengths[i] = static_cast<std::uint32_t>(p.size());
    }
  }
  static std::vector<TokenId> prompt(std::uint64_t i) {
    std::vector<TokenId> tokens = {static_cast<TokenId>(i % 7), static_cast<TokenId>((3 * i + 1) % 7)};
    if (i % 2 == 1) tokens.push_back(static_cast<TokenId>((5 * i + 2) % 7));
    return tokens;
  }

 private:
  LawFacts facts_;
};

struct TinyEvent {
  std::string name;
  std::shared_ptr<const TextPattern> pattern;
  std::function<bool(const std::string& text, std::span<const TokenId> tokens)> happens;  // by itself
};

inline TokenTexts tiny_token_texts() { return {.text = kTinyTexts, .first = {}}; }

inline std::shared_ptr<const TextPattern> tiny_pattern(const std::string& kind, const ByteDfa& dfa) {
  const std::vector<TokenId> stop = {kTinyStop};
  return std::make_shared<const TextPattern>(
      TextPattern{.kind = kind,
                  .value = kind,
                  .automaton = TokenAutomaton(dfa, tiny_token_texts(), stop),
                  .dfa = dfa,
                  .texts = tiny_token_texts(),
                  .text = kind});
}

// a(b|c)*d, by hand.
inline bool has_abcd(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != 'a') continue;
    std::size_t j = i + 1;
    while (j < text.size() && (text[j] == 'b' || text[j] == 'c')) ++j;
    if (j < text.size() && text[j] == 'd') return true;
  }
  return false;
}

inline std::vector<TinyEvent> tiny_events() {
  const std::vector<TokenId> stop = {kTinyStop}, any = {3, 6};
  std::vector<TinyEvent> events;
  events.push_back({"starts with bab", tiny_pattern("starts-with", starts_with("bab")),
                    [](const std::string& text, auto) { return text.starts_with("bab"); }});
  events.push_back({"contains abca", tiny_pattern("contains", contains("abca")),
                    [](const std::string& text, auto) { return text.find("abca") != std::string::npos; }});
  events.push_back(
      {"tokens 3 or 6",
       std::make_shared<const TextPattern>(TextPattern{
           .kind = "tokens-any", .value = "3,6", .automaton = TokenAutomaton::any_of(any, kTinyVocab, stop)}),
       [](const std::string&, std::span<const TokenId> tokens) {
         return std::any_of(tokens.begin(), tokens.end(), [](TokenId t) { return t == 3 || t == 6; });
       }});
  return events;
}
// Where regular expressions are there.
inline TinyEvent tiny_regex_event() {
  return {"matches a(b|c)*d", tiny_pattern("matches", matches("a(b|c)*d", "test")),
          [](const std::string& text, auto) { return has_abcd(text); }};
}
inline TinyEvent tiny_end_event() {
  return {"matches c$", tiny_pattern("matches", matches("c$", "test")),
          [](const std::string& text, auto) { return !text.empty() && text.back() == 'c'; }};
}

// The exact probability, by all continuations of all prompts.
class TinyTruth {
 public:
  TinyTruth(const Transformer& model, const SamplingConfig& sampling) : model_(model), sampling_(sampling) {}
  double operator()(const TinyEvent& event) {
    double sum = 0.0;
    for (std::size_t i = 0; i < TinyPrompts::kCount; ++i) {
      std::vector<TokenId> tokens = TinyPrompts::prompt(i);
      sum += rest(tokens, tokens.size(), event) / TinyPrompts::kCount;
    }
    return sum;
  }

 private:
  double rest(std::vector<TokenId>& tokens, std::size_t prompt, const TinyEvent& event) {
    const std::size_t drawn = tokens.size() - prompt;
    if (drawn == sampling_.max_tokens || (drawn > 0 && tokens.back() == kTinyStop)) {
      std::string text;
      for (std::size_t i = prompt; i < tokens.size(); ++i)
        text += kTinyTexts[static_cast<std::size_t>(tokens[i])];
      return event.happens(text, std::span(tokens).subspan(prompt)) ? 1.0 : 0.0;
    }
    const std::vector<double>& p = law(tokens);
    double sum = 0.0;
    for (std::size_t v = 0; v < kTinyVocab; ++v) {
      if (p[v] == 0.0) continue;
      tokens.push_back(static_cast<TokenId>(v));
      sum += p[v] * rest(tokens, prompt, event);
      tokens.pop_back();
    }
    return sum;
  }
  const std::vector<double>& law(const std::vector<TokenId>& tokens) {
    std::vector<double>& p = known_[tokens];
    if (!p.empty()) return p;
    const std::size_t d = model_.config().d_model;
    AlignedVector<float> resid(d), found(kTinyVocab);
    final_residuals(model_, {tokens, tokens.size()}, pool_, {resid.data(), d});
    logits(model_.head(), 1, {resid.data(), d}, pool_, {found.data(), kTinyVocab});
    NextTokenLaw next(sampling_, kTinyVocab);
    next.set(found);
    for (std::size_t v = 0; v < kTinyVocab; ++v) p.push_back(next.p(static_cast<TokenId>(v)));
    return p;
  }

  const Transformer& model_;
  SamplingConfig sampling_;
  ThreadPool pool_{1};
  std::map<std::vector<TokenId>, std::vector<double>> known_;
};

inline SamplingConfig tiny_sampling(std::size_t max_tokens) {
  return {.temperature = 0.7, .top_p = 0.9, .stop = {kTinyStop}, .max_tokens = max_tokens};
}

}  // namespace deeptail
