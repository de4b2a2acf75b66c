// Scores along a direction: the residual of the last of the positions that count, of a model that ends there.
#include "events/probe.h"

#include <algorithm>
#include <cmath>

namespace deeptail {

namespace {

// The tokens of each input that count.
class Cut {
 public:
  // Valid until the next call.
  TokenBatch of(const Probe& probe, TokenBatch batch) {
    lengths_.clear();
    for (std::size_t i = 0; i < batch.size(); ++i)
      lengths_.push_back(static_cast<std::uint32_t>(probe.length_of(batch.length_of(i), batch.length_of(i))));
    return {batch.tokens, batch.length, lengths_};
  }

 private:
  std::vector<std::uint32_t> lengths_;
};

class ProbeScorer final : public Scorer {
 public:
  ProbeScorer(const Probe& probe, const InputLaw& law, const ScorerOptions& options, ThreadPool& pool)
      : probe_(probe),
        pool_(pool),
        rescorer_(probe.blocks(), options.max_held, law.facts().max_length, pool,
                  prefix_of(probe, law, pool)) {}

  Work scores(const EventInputs& inputs, std::span<double> out) override {
    const TokenBatch batch = cut_.of(probe_, inputs.inputs);
    const std::size_t d = probe_.blocks().config().d_model;
    resid_.resize(out.size() * d);
    final_residuals(probe_.blocks(), batch, pool_, {resid_.data(), d});
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = probe_.score(resid_.data() + i * d);
    return forwards(batch);
  }
  Work hold(const EventInputs& inputs, const ScoreHints&) override {
    const TokenBatch batch = cut_.of(probe_, inputs.inputs);
    rescorer_.reset(batch);
    return forwards(batch);
  }
  Work rescore(const Proposals& p, std::span<double> out) override {
    return propose(p, [&](std::size_t i, double score) {
      out[i] = score;
      return false;
    });
  }
  Work decide(double level, const Proposals& p, std::span<std::uint8_t> accept) override {
    return propose(p, [&](std::size_t i, double score) {
      accept[i] = score >= level;
      return score >= level;
    });
  }

 private:
  static std::vector<TokenId> prefix_of(const Probe& probe, const InputLaw& law, ThreadPool& pool) {
    std::vector<TokenId> prefix = constant_prefix(law, pool);
    if (probe.file().place == ProbeFile::Place::kIndex)
      prefix.resize(std::min(prefix.size(), probe.file().index));  // short of the last position that counts
    return prefix;
  }
  Work forwards(TokenBatch batch) const {
    Work work{.forwards = batch.size()};
    for (std::size_t i = 0; i < batch.size(); ++i)
      work.flops += forward_flops(probe_.blocks().config(), batch.length_of(i));
    return work;
  }
  template <class Take>  // take(i, score): whether proposal i shall be held
  Work propose(const Proposals& p, const Take& take) {
    const TokenBatch batch = cut_.of(probe_, p.changed.inputs);
    Work work{.rescored = batch.size()};
    proposals_.clear();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::size_t length = batch.length_of(i);
      proposals_.push_back({p.held[i], batch.row(i), length});
      work.flops += rescoring_flops(probe_.blocks().config(), length,
                                    std::min<std::size_t>(p.first_changed[i], length - 1));
    }
    const auto answer = [&](std::size_t first, std::size_t n, ConstRows resid, std::span<std::uint8_t> accept,
                            std::size_t) {
      for (std::size_t i = 0; i < n; ++i) accept[i] = take(first + i, probe_.score(resid.row(i)));
    };
    rescorer_.propose(proposals_, std::ref(answer));
    return work;
  }

  const Probe& probe_;
  ThreadPool& pool_;
  Cut cut_;
  Rescorer rescorer_;
  AlignedVector<float> resid_;  // [n, d_model]
  std::vector<Rescorer::Proposal> proposals_;
};

}  // namespace

Probe::Probe(ProbeFile file, double threshold, const Transformer& model)
    : file_(std::move(file)),
      threshold_(threshold),
      blocks_((file_.layer < model.config().n_layers)
                  ? model.first_blocks(file_.layer + 1)
                  : throw InputError("{}: layer {}: expected 0 to {}, as the model has {}", file_.name,
                                     file_.layer, model.config().n_layers - 1, model.config().n_layers)) {
  if (file_.direction.size() != model.config().d_model)
    throw InputError("{}: a direction of {} numbers: expected {}, the model's d_model", file_.name,
                     file_.direction.size(), model.config().d_model);
  if (!std::isfinite(threshold)) throw InputError("threshold {}: expected a finite number", threshold);
}

std::string Probe::text() const {
  return fmt::format("is at least {:g} along {} after block {}", threshold_, file_.name, file_.layer);
}

double Probe::score(const float* resid) const {
  double sum = file_.bias;
  for (std::size_t i = 0; i < file_.direction.size(); ++i)
    sum += static_cast<double>(file_.direction[i]) * static_cast<double>(resid[i]);
  if (!std::isfinite(sum))
    throw InputError(
        "{}: the activation along it is no finite number: the model's numbers grow beyond float32",
        file_.name);
  return sum - threshold_;
}

std::size_t Probe::length_of(std::size_t n_prompt, std::size_t n_tokens) const {
  if (file_.place == ProbeFile::Place::kPrompt) return n_prompt;
  if (file_.place == ProbeFile::Place::kContinuation) return n_tokens;
  if (file_.index >= n_tokens)
    throw InputError("{}: position {}, but a text has {} tokens", file_.name, file_.index, n_tokens);
  return file_.index + 1;
}

std::unique_ptr<Scorer> ProbeEvent::scorer(const Transformer&, const InputLaw& law,
                                           const ScorerOptions& options, ThreadPool& pool) const {
  return std::make_unique<ProbeScorer>(*probe_, law, options, pool);
}

ScorerBytes ProbeEvent::bytes(const ModelConfig&, const InputLaw& law) const {
  const ModelConfig& config = probe_->blocks().config();
  return {.scored = sizeof(float) * static_cast<double>(config.d_model),
          .held = static_cast<double>(Rescorer::bytes_per_slot(config, law.facts().max_length))};
}

void ProbeScore::scores(std::span<const SampledText> texts, std::span<double> out, ThreadPool& pool) const {
  std::size_t longest = 1;
  for (const SampledText& t : texts) longest = std::max(longest, t.prompt.size() + t.continuation.size());
  std::vector<TokenId> tokens(texts.size() * longest);
  std::vector<std::uint32_t> lengths;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto& [prompt, continuation] = texts[i];
    TokenId* row = tokens.data() + i * longest;
    std::copy(continuation.begin(), continuation.end(), std::copy(prompt.begin(), prompt.end(), row));
    lengths.push_back(
        static_cast<std::uint32_t>(probe_->length_of(prompt.size(), prompt.size() + continuation.size())));
  }
  const std::size_t d = probe_->blocks().config().d_model;
  AlignedVector<float> resid(texts.size() * d);
  final_residuals(probe_->blocks(), {tokens, longest, lengths}, pool, {resid.data(), d});
  for (std::size_t i = 0; i < texts.size(); ++i) out[i] = probe_->score(resid.data() + i * d);
}

double ProbeScore::flops(std::size_t n_tokens) const {
  return forward_flops(probe_->blocks().config(), n_tokens);
}

}  // namespace deeptail
