// Prompts that a language model says: part t draws its token t. Redrawing a part leaves the tokens before it, and
// says the rest anew with the numbers that it had.
#include <algorithm>

#include "core/nearest.h"
#include "deeptail/sampling.h"
#include "inputs/law_reader.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxNewTokens = 1 << 16;

class LanguageModelLaw final : public InputLaw {
 public:
  LanguageModelLaw(LawFacts facts, Transformer model, SamplingConfig config, std::vector<TokenId> prompt)
      : facts_(std::move(facts)),
        model_(std::move(model)),
        config_(std::move(config)),
        prompt_(std::move(prompt)) {
    facts_.n_parts = config_.max_tokens;
    facts_.max_length = prompt_.size() + config_.max_tokens;
    facts_.summary =
        fmt::format("{} token{}, and up to {} more that model {} says", prompt_.size(),
                    prompt_.size() == 1 ? "" : "s", config_.max_tokens, model_.config().model_name);
  }

  const LawFacts& facts() const override { return facts_; }
  std::size_t first_position(std::size_t part) const override { return prompt_.size() + part; }

  void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const override {
    const std::size_t n = parts.size() / facts_.n_parts;
    out.resize(n, facts_.max_length);
    std::vector<std::uint32_t> all(n);
    for (std::size_t i = 0; i < n; ++i) {
      all[i] = static_cast<std::uint32_t>(i);
      std::copy(prompt_.begin(), prompt_.end(), out.row(i).begin());
      out.lengths[i] = static_cast<std::uint32_t>(prompt_.size());
    }
    grow(all, parts, out, pool);
  }

  void redraw(std::span<const Redraw> redraws, std::span<std::uint64_t> parts, Inputs& inputs,
              std::span<std::uint32_t> first_changed, ThreadPool& pool) const override {
    std::fill(first_changed.begin(), first_changed.end(), kUnchanged);
    std::vector<std::uint32_t> earliest(inputs.size(), kUnchanged), changed;
    for (const Redraw& r : redraws) {
      parts[r.input * facts_.n_parts + r.part] = r.number;
      const auto position = static_cast<std::uint32_t>(prompt_.size() + r.part);
      if (position > inputs.lengths[r.input]) continue;  // the text ended before this token
      if (earliest[r.input] == kUnchanged) changed.push_back(r.input);
      earliest[r.input] = std::min(earliest[r.input], position);
    }
    std::sort(changed.begin(), changed.end());
    const Inputs before = changed.empty() ? Inputs() : inputs;
    for (const std::uint32_t i : changed) inputs.lengths[i] = earliest[i];
    grow(changed, parts, inputs, pool);
    for (const std::uint32_t i : changed) {
      const auto was = before.sequence(i), is = inputs.sequence(i);
      const auto [a, b] = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
      if (a != was.end() || b != is.end()) first_changed[i] = static_cast<std::uint32_t>(a - was.begin());
    }
  }

 private:
  // Inputs `which` have their first tokens; the rest is drawn with their parts.
  void grow(std::span<const std::uint32_t> which, std::span<const std::uint64_t> parts, Inputs& out,
            ThreadPool& pool) const {
    if (which.empty()) return;
    constexpr std::size_t kSlotBytes = std::size_t{256} << 20, kMostTexts = 256;
    const std::size_t per_slot =
        Decoder::bytes_per_slot(model_.config(), facts_.max_length, prompt_.size() - 1);
    const std::size_t n_slots =
        std::min(which.size(),
                 std::clamp<std::size_t>(kSlotBytes / std::max<std::size_t>(per_slot, 1), 1, kMostTexts));
    Decoder decoder(model_, n_slots, facts_.max_length, pool, std::span(prompt_).first(prompt_.size() - 1));
    std::vector<NextTokenLaw> laws(pool.size(), NextTokenLaw(config_, model_.config().d_vocab));
    std::vector<Decoder::Text> texts;
    for (std::size_t first = 0; first < which.size(); first += n_slots) {
      const auto batch = which.subspan(first, std::min(n_slots, which.size() - first));
      texts.clear();
      for (std::size_t k = 0; k < batch.size(); ++k)
        if (out.lengths[batch[k]] < facts_.max_length)
          texts.push_back({.slot = k, .tokens = out.row(batch[k]).data(), .length = out.lengths[batch[k]]});
      decoder.run(texts,
                  [&](std::size_t text, std::size_t length, std::span<const float> logits,
                      std::size_t worker) -> Decoder::Choice {
                    NextTokenLaw& law = laws[worker];
                    law.set(logits);
                    const std::size_t part = length - prompt_.size();
                    const TokenId token = law.draw(parts[batch[texts[text].slot] * facts_.n_parts + part]);
                    if (config_.stops(token)) return kEndOfText;
                    return {token, length + 1 == facts_.max_length};
                  });
      for (const Decoder::Text& text : texts) {
        const std::uint32_t i = batch[text.slot];
        out.lengths[i] = static_cast<std::uint32_t>(text.length);
        std::fill(out.row(i).begin() + static_cast<std::ptrdiff_t>(text.length), out.row(i).end(), 0);
      }
    }
  }

  LawFacts facts_;
  Transformer model_;
  SamplingConfig config_;
  std::vector<TokenId> prompt_;
};

SamplingConfig read_sampling(LawReader& reader, const JsonNode& json) {
  SamplingConfig config;
  config.max_tokens = json.at("max_tokens").count(1, kMaxNewTokens);
  if (json.has("temperature")) config.temperature = json.at("temperature").number();
  if (json.has("top_k")) config.top_k = json.at("top_k").count(0, 1 << 30);
  if (json.has("top_p")) config.top_p = json.at("top_p").number();
  if (json.has("stop"))
    for (const JsonNode& item : json.at("stop").elements()) {
      if (!item.value().is_string()) {
        config.stop.push_back(item.token_id(reader.subject(json).d_vocab));
      } else if (const auto id = reader.tokenizer(json).tokenizer.id_of(item.text())) {
        config.stop.push_back(*id);
      } else {
        item.fail_expected("one token of the tokenizer, as text or id");
      }
    }
  return config;
}

// The model that says the prompts, with the hash of it: the one that is asked, or another of its tokenizer.
std::pair<Transformer, std::string> speaker_of(LawReader& reader, const JsonNode& json) {
  const LawSubject& subject = reader.subject(json);
  if (!json.has("model") && subject.transformer) return {*subject.transformer, subject.model_sha256};
  if (json.has("model")) reader.check_is_file(json.at("model"));
  const LoadedModel model = load_model(json.has("model") ? json.at("model").text() : subject.folder);
  const std::string& own = reader.tokenizer(json).sha256;
  if (!model.tokenizer || model.tokenizer->sha256 != own || model.config().d_vocab > subject.d_vocab)
    throw InputError("{}: model {} has another tokenizer than model {}", json.where(), model.name,
                     subject.model_name);
  return {model.transformer, model.sha256};
}

}  // namespace

std::unique_ptr<InputLaw> read_language_model(LawReader& reader, const JsonNode& json) {
  expect_keys(json, {"format", "name", "description", "kind", "bos", "prompt", "model", "max_tokens",
                     "temperature", "top_k", "top_p", "stop"});
  reader.tokenizer(json);
  const Bos bos = read_law_bos(json, reader.subject(json).d_vocab);
  const std::string text = json.has("prompt") ? json.at("prompt").text() : "";
  std::vector<TokenId> prompt = reader.tokens_of(text, bos, json.where());
  SamplingConfig config = read_sampling(reader, json);
  auto [model, sha256] = speaker_of(reader, json);
  try {
    config.validate(model.config().d_vocab);
  } catch (const InputError& e) {
    throw InputError("{}: {}", json.where(), e.what());
  }
  if (prompt.size() + config.max_tokens > model.config().n_ctx)
    throw InputError("{}: {} tokens and {} new ones, but model {} reads at most n_ctx = {}", json.where(),
                     prompt.size(), config.max_tokens, model.config().model_name, model.config().n_ctx);
  reader.note(sha256);
  return std::make_unique<LanguageModelLaw>(reader.facts(json, "language_model"), model, std::move(config),
                                            std::move(prompt));
}

}  // namespace deeptail
