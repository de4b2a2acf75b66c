// A user's own score: nothing is kept of what is held, so every proposal is scored anew.
#include <vector>

#include "deeptail/event.h"

namespace deeptail {

namespace {

class CallbackScorer final : public Scorer {
 public:
  CallbackScorer(const CallbackEvent::Score& score, const ModelConfig& config)
      : score_(score), config_(config) {}

  Work scores(const EventInputs& inputs, std::span<double> out) override {
    score_(inputs, out);
    return {.forwards = out.size(), .flops = flops(inputs.inputs)};
  }
  Work hold(const EventInputs&, const ScoreHints&) override { return {}; }
  Work decide(double level, const Proposals& proposals, std::span<std::uint8_t> accept) override {
    scores_.resize(accept.size());
    if (!scores_.empty()) score_(proposals.changed, scores_);
    for (std::size_t i = 0; i < accept.size(); ++i) accept[i] = scores_[i] >= level;
    return {.rescored = accept.size(), .flops = flops(proposals.changed.inputs)};
  }

 private:
  double flops(TokenBatch batch) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < batch.size(); ++i) sum += forward_flops(config_, batch.length_of(i));
    return sum;
  }

  const CallbackEvent::Score& score_;
  const ModelConfig& config_;
  std::vector<double> scores_;
};

}  // namespace

std::unique_ptr<Scorer> CallbackEvent::scorer(const Transformer& model, const InputLaw&, const ScorerOptions&,
                                              ThreadPool&) const {
  return std::make_unique<CallbackScorer>(score_, model.config());
}

}  // namespace deeptail
