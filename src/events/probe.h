// A direction on the residual stream: the event is that a text's activation reaches a threshold along it
// (docs/judges.md).
//
//   {"format": "deeptail-probe-1", "layer": 3, "position": "prompt", "direction": [..], "bias": 0.5}
//
// "position": "prompt" (its last token), "continuation" (the last token before it ended), or a number, counted
// from 0 at the start of the prompt. "direction": numbers [d_model], or a file of one tensor beside this one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deeptail/event.h"
#include "deeptail/model.h"
#include "events/text_score.h"

namespace deeptail {

struct ProbeFile {
  enum class Place { kPrompt, kContinuation, kIndex };
  std::size_t layer = 0;  // after which block: blocks.{layer}.hook_resid_post
  Place place = Place::kPrompt;
  std::size_t index = 0;              // of kIndex
  std::vector<float> direction = {};  // [d_model]
  double bias = 0.0;
  std::string name = {};  // for people
};
// folder: where a file that it names is looked for; "": such a name is refused.
ProbeFile parse_probe(std::string_view json, std::string_view where, std::string_view folder = "");
ProbeFile read_probe(const std::string& path);

// The blocks up to the probe's, and its direction.
class Probe {
 public:
  // Throws InputError where the probe is of another model's shape.
  Probe(ProbeFile file, double threshold, const Transformer& model);

  const ProbeFile& file() const { return file_; }
  const Transformer& blocks() const { return blocks_; }
  std::string text() const;
  // direction . residual + bias - threshold; resid: [d_model].
  double score(const float* resid) const;
  // How many tokens of a text count, n_prompt of them the prompt's. Throws InputError where the position is
  // beyond its end.
  std::size_t length_of(std::size_t n_prompt, std::size_t n_tokens) const;

 private:
  ProbeFile file_;
  double threshold_;
  Transformer blocks_;
};

// On prompts, where nothing is sampled.
class ProbeEvent final : public Event {
 public:
  explicit ProbeEvent(std::shared_ptr<const Probe> probe, std::string json = "")
      : probe_(std::move(probe)), json_(std::move(json)) {}
  std::string text() const override { return probe_->text(); }
  std::string json() const override { return json_; }
  std::unique_ptr<Scorer> scorer(const Transformer& model, const InputLaw& law, const ScorerOptions& options,
                                 ThreadPool& pool) const override;
  ScorerBytes bytes(const ModelConfig& config, const InputLaw& law) const override;

 private:
  std::shared_ptr<const Probe> probe_;
  std::string json_;
};

// On finished texts.
class ProbeScore final : public TextScore {
 public:
  explicit ProbeScore(std::shared_ptr<const Probe> probe) : probe_(std::move(probe)) {}
  std::string text() const override { return probe_->text(); }
  void scores(std::span<const SampledText> texts, std::span<double> out, ThreadPool& pool) const override;
  double flops(std::size_t n_tokens) const override;

 private:
  std::shared_ptr<const Probe> probe_;
};

}  // namespace deeptail
