// Questions that can be answered by enumeration: every kind of law and of event on a model of eight tokens.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "deeptail/load.h"
#include "events/finished_text.h"
#include "events/probe.h"
#include "unit/tiny_texts.h"

namespace deeptail {

inline constexpr std::size_t kQuestionSteps = 6;

// kTinyTexts as a tokenizer.
inline Tokenizer tiny_tokenizer() {
  return Tokenizer::parse(
      R"({"version": "1.0", "normalizer": null, "post_processor": null, "decoder": {"type": "ByteLevel"},
          "added_tokens": [{"id": 7, "content": "<e>", "special": true, "normalized": false, "lstrip": false,
                            "rstrip": false, "single_word": false}],
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
          "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "ab": 4, "Ġ": 5, "bc": 6},
                    "merges": ["a b", "b c"]}})",
      "tiny");
}

// A law and all its inputs, with their probabilities by another way.
struct TinyLaw {
  std::string name;
  std::shared_ptr<const InputLaw> law;
  std::vector<std::pair<std::vector<TokenId>, double>> inputs;
};

// The law of the next token of a tiny model after any tokens, by whole forward passes.
class TinyNext {
 public:
  TinyNext(const Transformer& model, const SamplingConfig& sampling)
      : model_(model), law_(sampling, kTinyVocab) {}
  std::vector<double> operator()(const std::vector<TokenId>& tokens) {
    const std::size_t d = model_.config().d_model;
    resid_.resize(d);
    found_.resize(kTinyVocab);
    final_residuals(model_, {tokens, tokens.size()}, pool_, {resid_.data(), d});
    logits(model_.head(), 1, {resid_.data(), d}, pool_, {found_.data(), kTinyVocab});
    law_.set(found_);
    std::vector<double> p;
    for (std::size_t v = 0; v < kTinyVocab; ++v) p.push_back(law_.p(static_cast<TokenId>(v)));
    return p;
  }

 private:
  const Transformer& model_;
  NextTokenLaw law_;
  ThreadPool pool_{1};
  AlignedVector<float> resid_, found_;
};

// Constant, pool with weights, template, mixture and language model.
class TinyLaws {
 public:
  explicit TinyLaws(const Transformer& model)
      : subject_{.model_name = "tiny",
                 .folder = "",
                 .d_vocab = kTinyVocab,
                 .tokenizer = NamedTokenizer{tiny_tokenizer(), "sha"},
                 .transformer = model,
                 .model_sha256 = "sha"} {
    add("constant", R"("kind": "constant", "prompt": "d a")", {{encoded("d a"), 1.0}});
    add_pool();
    add_template();
    add_language_model(model);
    add_mixture();
  }
  const std::vector<TinyLaw>& all() const { return laws_; }

 private:
  std::vector<TokenId> encoded(const std::string& text) const {
    return subject_.tokenizer->tokenizer.encode(text);
  }
  void add(const std::string& name, const std::string& rest,
           std::vector<std::pair<std::vector<TokenId>, double>> inputs) {
    bodies_.push_back("{\"format\": \"deeptail-law-1\", " + rest + "}");
    laws_.push_back({name, parse_law(bodies_.back(), name, "", &subject_), std::move(inputs)});
  }
  void add_pool() {
    const std::pair<const char*, int> prompts[] = {{"ab", 1},  {"ba", 2},  {"c d", 1}, {"dab", 3},
                                                   {"a a", 1}, {"bca", 1}, {"dd", 4},  {"cc b", 3}};
    std::string list;
    std::vector<std::pair<std::vector<TokenId>, double>> inputs;
    for (const auto& [text, weight] : prompts) {
      list += fmt::format("{}{{\"text\": \"{}\", \"weight\": {}}}", list.empty() ? "" : ", ", text, weight);
      inputs.emplace_back(encoded(text), weight / 16.0);
    }
    add("pool", "\"kind\": \"pool\", \"prompts\": [" + list + "]", std::move(inputs));
  }
  void add_template() {
    std::vector<std::pair<std::vector<TokenId>, double>> inputs;
    const std::pair<const char*, double> first[] = {{"a", 0.25}, {"dd", 0.75}};
    for (const auto& [x, p] : first)
      for (const char* y : {"b", "c", "ab", " "})
        inputs.emplace_back(encoded(std::string(x) + "c" + y), p / 4.0);
    add("template",
        R"("kind": "template", "text": "{x}c{y}", "slots": {"x": {"list": ["a", {"text": "dd", "weight": 3}]},
           "y": {"list": ["b", "c", "ab", " "]}})",
        std::move(inputs));
  }
  void add_language_model(const Transformer& model) {
    TinyNext next(model, {.temperature = 0.9, .top_k = 4, .stop = {kTinyStop}, .max_tokens = 2});
    std::vector<std::pair<std::vector<TokenId>, double>> inputs;
    const std::vector<TokenId> start = encoded("b");
    const std::vector<double> first = next(start);
    for (std::size_t v = 0; v < kTinyVocab; ++v) {
      if (first[v] == 0.0) continue;
      if (v == kTinyStop) {
        inputs.emplace_back(start, first[v]);
        continue;
      }
      std::vector<TokenId> longer = start;
      longer.push_back(static_cast<TokenId>(v));
      const std::vector<double> second = next(longer);
      for (std::size_t w = 0; w < kTinyVocab; ++w) {
        if (second[w] == 0.0) continue;
        inputs.emplace_back(longer, first[v] * second[w]);
        if (w != kTinyStop) inputs.back().first.push_back(static_cast<TokenId>(w));
      }
    }
    add("language model",
        R"("kind": "language_model", "prompt": "b", "max_tokens": 2, "temperature": 0.9, "top_k": 4, "stop": ["<e>"])",
        std::move(inputs));
  }
  // Of the three before it.
  void add_mixture() {
    std::string list;
    std::vector<std::pair<std::vector<TokenId>, double>> inputs;
    const double weights[] = {0.0, 1.0, 2.0, 1.0};
    for (std::size_t i = 1; i < 4; ++i) {
      list += fmt::format("{}{{\"law\": {}, \"weight\": {}}}", i > 1 ? ", " : "", bodies_[i], weights[i]);
      for (const auto& [tokens, p] : laws_[i].inputs) inputs.emplace_back(tokens, 0.25 * weights[i] * p);
    }
    add("mixture", "\"kind\": \"mixture\", \"laws\": [" + list + "]", std::move(inputs));
  }

  LawSubject subject_;
  std::vector<std::string> bodies_;
  std::vector<TinyLaw> laws_;
};

// A linear function of the letters that were said.
class LetterJudge final : public TextScore {
 public:
  explicit LetterJudge(double threshold) : threshold_(threshold) {}
  std::string text() const override { return "is judged"; }
  void scores(std::span<const SampledText> texts, std::span<double> out, ThreadPool&) const override {
    for (std::size_t i = 0; i < texts.size(); ++i)
      out[i] = value(texts_.continuation(texts[i].prompt, texts[i].continuation)) - threshold_;
  }
  static double value(const std::string& text) {
    constexpr double kWorth[] = {-0.71, 1.0, 0.37, -0.13};
    double sum = 0.0;
    for (const char c : text) sum += c == ' ' ? 0.053 : kWorth[c - 'a'];
    return sum;
  }

 private:
  double threshold_;
  TokenTexts texts_ = tiny_token_texts();
};

// An event, and whether a finished text has it, by itself.
struct TinyQuestion {
  std::string name;
  std::shared_ptr<const Event> event;
  std::function<bool(const std::string& text, std::span<const TokenId> prompt, std::span<const TokenId> said)>
      happens;
  const ContinuationEvent* pattern() const { return event->continuation(); }
  bool next_token = false;  // one token is all that is drawn
};

inline std::shared_ptr<const ProbeScore> tiny_probe(const Transformer& model, double threshold) {
  std::vector<float> direction;
  for (std::size_t i = 0; i < model.config().d_model; ++i)
    direction.push_back(i % 3 == 0 ? 0.8f : i % 3 == 1 ? -0.5f : 0.3f);
  return std::make_shared<const ProbeScore>(std::make_shared<const Probe>(
      ProbeFile{
          .layer = 0, .place = ProbeFile::Place::kContinuation, .direction = direction, .name = "probe"},
      threshold, model));
}

inline std::vector<TinyQuestion> tiny_questions(const Transformer& model, double judged, double probed) {
  std::vector<TinyQuestion> out;
  const SamplingConfig sampling = tiny_sampling(kQuestionSteps);
  auto patterns = tiny_events();
  patterns.push_back(tiny_regex_event());
  patterns.push_back(tiny_end_event());
  for (const TinyEvent& e : patterns)
    out.push_back({.name = e.name,
                   .event = std::make_shared<const ContinuationEvent>(e.pattern, sampling),
                   .happens = [e](const std::string& text, auto, std::span<const TokenId> said) {
                     return e.happens(text, said);
                   }});
  const std::vector<TokenId> stop = {kTinyStop}, target = {2};
  out.push_back(
      {.name = "target 2, sampled",
       .event = std::make_shared<const ContinuationEvent>(
           std::make_shared<const TextPattern>(
               TextPattern{.kind = "tokens-any",
                           .value = "2",
                           .automaton = TokenAutomaton::any_of(target, kTinyVocab, stop)}),
           tiny_sampling(1)),
       .happens = [](const std::string&, auto, std::span<const TokenId> said) { return said[0] == 2; },
       .next_token = true});
  const auto texts = std::make_shared<const TokenTexts>(tiny_token_texts());
  out.push_back({.name = "judge",
                 .event = std::make_shared<const FinishedTextEvent>(
                     EventSpec{.kind = EventKind::kJudge, .value = "judge", .within = kQuestionSteps},
                     std::make_shared<const LetterJudge>(judged), sampling, texts),
                 .happens = [judged](const std::string& text, auto, auto) {
                   return LetterJudge::value(text) - judged >= 0.0;
                 }});
  const auto probe = tiny_probe(model, probed);
  out.push_back({.name = "probe",
                 .event = std::make_shared<const FinishedTextEvent>(
                     EventSpec{.kind = EventKind::kProbe, .value = "probe", .within = kQuestionSteps}, probe,
                     sampling, texts),
                 .happens = [probe](const std::string&, std::span<const TokenId> prompt,
                                    std::span<const TokenId> said) {
                   thread_local ThreadPool pool(1);
                   if (!said.empty() && said.back() == kTinyStop) said = said.first(said.size() - 1);
                   const SampledText text{prompt, said};
                   double score = 0.0;
                   probe->scores({&text, 1}, {&score, 1}, pool);
                   return score >= 0.0;
                 }});
  return out;
}

// The probability of every question after one prompt: all texts, each with its own probability.
class TinyAnswers {
 public:
  TinyAnswers(const Transformer& model, const std::vector<TinyQuestion>& questions)
      : questions_(questions), next_(model, tiny_sampling(kQuestionSteps)) {}
  std::vector<double> operator()(const std::vector<TokenId>& prompt) {
    sums_.assign(questions_.size(), 0.0);
    tokens_ = prompt;
    prompt_ = prompt.size();
    visit(1.0);
    return sums_;
  }

 private:
  std::span<const TokenId> said() const { return std::span(tokens_).subspan(prompt_); }
  void ask(double p, bool next_token) {
    std::string text;
    for (const TokenId id : said()) text += kTinyTexts[static_cast<std::size_t>(id)];
    for (std::size_t q = 0; q < questions_.size(); ++q)
      if (questions_[q].next_token == next_token &&
          questions_[q].happens(text, std::span(tokens_).first(prompt_), said()))
        sums_[q] += p;
  }
  void visit(double p) {
    const std::size_t n = said().size();
    if (n == 1) ask(p, true);
    if (n == kQuestionSteps || (n > 0 && tokens_.back() == kTinyStop)) {
      ask(p, false);
      return;
    }
    const std::vector<double> law = next_(tokens_);
    for (std::size_t v = 0; v < kTinyVocab; ++v) {
      if (law[v] == 0.0) continue;
      tokens_.push_back(static_cast<TokenId>(v));
      visit(p * law[v]);
      tokens_.pop_back();
    }
  }

  const std::vector<TinyQuestion>& questions_;
  TinyNext next_;
  std::vector<TokenId> tokens_;
  std::size_t prompt_ = 0;
  std::vector<double> sums_;
};

}  // namespace deeptail
