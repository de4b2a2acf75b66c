// What the activation-space methods are about: a way to the vocabulary and a cloud of activations.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/progress.h"
#include "deeptail/activations.h"
#include "deeptail/estimators.h"

namespace deeptail::cli {

struct CloudSubject {
  Head head;
  Activations activations;
  std::optional<NamedTokenizer> tokenizer;
  Provenance provenance;
  Cost capture_cost = {};  // of making the activations; nothing for a user's file
};

struct CloudOptions {
  std::string model, dist;           // both, or
  std::string activations, unembed;  // both of these
  std::uint64_t count = 1 << 16, seed = 1;
  // Told before the cloud is made, so that mistakes cost no time: its size; the vocabulary. Both may throw.
  std::function<void(std::size_t n, std::size_t d_model)> check_size = {};
  std::function<void(const Head&, const std::optional<NamedTokenizer>&)> check_head = {};
};
// Captures activations, or reads the user's files. Throws InputError when they do not fit together or not
// exactly one of the two sources is named. meter: shows how far the capture is.
CloudSubject load_cloud(const CloudOptions& options, ThreadPool& pool, ProgressMeter& meter);

Activations capture_with_progress(const LoadedModel& model, const InputLaw& law, const CaptureConfig& config,
                                  ThreadPool& pool, ProgressMeter& meter);

}  // namespace deeptail::cli
