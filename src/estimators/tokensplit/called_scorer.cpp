// A population's scores by a user's function. What was computed for the rows that it holds is kept, and never computed
// again: so a row has one score as long as it lives.
#include <cmath>
#include <string>
#include <unordered_map>

#include "estimators/tokensplit/called_scores.h"
#include "events/next_token.h"

namespace deeptail {

namespace {

using Service = CalledScores::Service;

class CalledScorer final : public Scorer {
 public:
  CalledScorer(Service& service, const CalledEvent& event, const ModelConfig& config, const InputLaw& law)
      : service_(service), event_(event.number()), flops_(event.score_flops(config, law)) {
    service_.join();
  }
  ~CalledScorer() override { service_.leave(); }

  Work scores(const EventInputs& inputs, std::span<double> out) override {
    Kept next;
    const Work work = score(inputs, exact(), out, &next);
    kept_.merge(next);
    return work;
  }

  Work hold(const EventInputs& inputs, const ScoreHints&) override {
    Kept held;
    for (std::size_t i = 0; i < inputs.inputs.size(); ++i)
      if (auto known = kept_.extract(key(inputs, i))) held.insert(std::move(known));
    kept_ = std::move(held);
    return {};
  }

  Work rescore(const Proposals& proposals, std::span<double> out) override {
    return score(proposals.changed, false, out, nullptr);
  }

  Work decide(double level, const Proposals& proposals, std::span<std::uint8_t> accept) override {
    std::vector<double> found(accept.size());
    Work work = score(proposals.changed, false, found, nullptr);
    if (exact()) work += settle_near(level, proposals.changed, found);
    const bool nothing = service_.gave_up();
    for (std::size_t i = 0; i < accept.size(); ++i) {
      accept[i] = !nothing && found[i] >= level;
      // Where there are two scores only the exact one lasts.
      if (accept[i] != 0 && !exact()) kept_.insert_or_assign(key(proposals.changed, i), found[i]);
    }
    return work;
  }

  bool gave_up() const override { return service_.gave_up(); }

 private:
  using Kept = std::unordered_map<std::string, double>;  // by key()

  bool exact() const { return static_cast<bool>(service_.config().exact); }

  // All that the score is a function of.
  std::string key(const EventInputs& inputs, std::size_t i) const {
    const auto tokens = inputs.inputs.sequence(i);
    const std::size_t n = service_.config().numbers;
    const auto numbers = inputs.numbers.subspan(i * n, n);
    std::string bytes(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
    bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    return bytes;
  }

  // Some of the inputs, together.
  bool ask(const EventInputs& inputs, std::span<const std::uint32_t> who, bool exactly,
           std::span<double> out) {
    const std::size_t length = inputs.inputs.length, n = service_.config().numbers;
    Inputs rows;
    rows.resize(who.size(), length);
    std::vector<std::uint64_t> numbers(who.size() * n);
    for (std::size_t j = 0; j < who.size(); ++j) {
      std::copy_n(inputs.inputs.row(who[j]), length, rows.row(j).begin());
      rows.lengths[j] = static_cast<std::uint32_t>(inputs.inputs.length_of(who[j]));
      std::copy_n(inputs.numbers.data() + who[j] * n, n, numbers.data() + j * n);
    }
    return service_.scores({rows.batch(), numbers}, event_, exactly, out);
  }

  // Those that are not known are asked for, each once; `found` takes them.
  Work score(const EventInputs& inputs, bool exactly, std::span<double> out, Kept* found) {
    std::unordered_map<std::string, std::size_t> place;  // among those that are asked for
    std::vector<std::uint32_t> who;
    std::vector<std::size_t> from(out.size(), kKnown);
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::string row = key(inputs, i);
      if (const auto known = kept_.find(row); known != kept_.end()) {
        out[i] = known->second;
        continue;
      }
      const auto [at, is_new] = place.try_emplace(std::move(row), who.size());
      if (is_new) who.push_back(static_cast<std::uint32_t>(i));
      from[i] = at->second;
    }
    std::vector<double> asked(who.size());
    const bool good = ask(inputs, who, exactly, asked);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (from[i] != kKnown) out[i] = asked[from[i]];
    if (good && found != nullptr)
      for (const auto& [row, at] : place) found->emplace(row, asked[at]);
    return {.forwards = exactly || found != nullptr ? who.size() : 0,
            .rescored = exactly || found != nullptr ? 0 : who.size(),
            .flops = flops_ * static_cast<double>(who.size())};
  }

  // The exact score where the first one may be on the wrong side of the level.
  Work settle_near(double level, const EventInputs& inputs, std::span<double> scores) {
    const double near = service_.config().near;
    std::vector<std::uint32_t> who;
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (std::abs(scores[i] - level) <= near) who.push_back(static_cast<std::uint32_t>(i));
    std::vector<double> exactly(who.size());
    if (!ask(inputs, who, true, exactly)) return {};
    std::uint64_t farther = 0;
    for (std::size_t j = 0; j < who.size(); ++j) {
      farther += !(std::abs(scores[who[j]] - exactly[j]) <= near);
      scores[who[j]] = exactly[j];
    }
    if (farther > 0) service_.count_farther(farther);
    return {.rescored = who.size(), .flops = flops_ * static_cast<double>(who.size())};
  }

  static constexpr std::size_t kKnown = static_cast<std::size_t>(-1);
  Service& service_;
  std::uint32_t event_;
  double flops_;
  Kept kept_;
};

}  // namespace

std::unique_ptr<Scorer> CalledEvent::scorer(const Transformer& model, const InputLaw& law,
                                            const ScorerOptions&, ThreadPool&) const {
  return std::make_unique<CalledScorer>(scores_.service(), *this, model.config(), law);
}

// Rows twice, as they are and as keys, with their scores.
ScorerBytes CalledEvent::bytes(const ModelConfig&, const InputLaw& law) const {
  const double row = sizeof(TokenId) * static_cast<double>(law.facts().max_length) +
                     sizeof(std::uint64_t) * static_cast<double>(n_parts());
  return {.scored = 2.0 * row + 96.0, .held = 2.0 * row + 96.0};
}

double CalledEvent::score_flops(const ModelConfig&, const InputLaw& law) const {
  return model_ == nullptr ? 1.0 : forward_flops(model_->config(), law.facts().max_length);
}

// As the model's own engine would pay for it, so that parts are chosen as there.
double CalledEvent::change_flops(const ModelConfig& config, const InputLaw& law, std::size_t part) const {
  if (model_ == nullptr) return 1.0;
  return exact_rescoring_flops(config, law.facts().max_length, law.first_position(part));
}

}  // namespace deeptail
