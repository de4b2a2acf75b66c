#include "cli/cloud_subject.h"

#include <filesystem>

#include "cli/interrupt.h"
#include "core/sha256.h"
#include "core/stopwatch.h"
#include "deeptail/methods.h"

namespace deeptail::cli {

namespace {

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

void check_source(const CloudOptions& o) {
  const bool from_model = !o.model.empty() || !o.dist.empty();
  const bool from_files = !o.activations.empty() || !o.unembed.empty();
  if (from_model && from_files)
    throw InputError(
        "--model/--dist and --activations/--unembed: expected one of the two pairs, found parts of both");
  if (from_files && (o.activations.empty() || o.unembed.empty()))
    throw InputError("--activations and --unembed: expected both, found only {}",
                     o.unembed.empty() ? "--activations" : "--unembed");
  if (!from_files && (o.model.empty() || o.dist.empty()))
    throw InputError("expected --model and --dist, or --activations and --unembed");
}

}  // namespace

Activations capture_with_progress(const LoadedModel& model, const InputLaw& law, const CaptureConfig& config,
                                  ThreadPool& pool, ProgressMeter& meter) {
  meter.restart({.label = fmt::format("{} {}", model.name, law.facts().name),
                 .unit = "activations",
                 .total = config.count});
  Activations out = capture(model.transformer, law, config, pool, shown_until_interrupted(meter));
  if (interrupted())
    throw Stopped(kInterrupted, "interrupted while capturing activations; nothing was written");
  return out;
}

CloudSubject load_cloud(const CloudOptions& o, ThreadPool& pool, ProgressMeter& meter) {
  check_source(o);
  if (!o.activations.empty()) {
    CloudSubject out{.head = Head::load(o.unembed),
                     .activations = read_activations(o.activations),
                     .tokenizer = std::nullopt,
                     .provenance = {.model = file_name(o.unembed),
                                    .dist = file_name(o.activations),
                                    .model_sha256 = sha256_of_file(o.unembed),
                                    .dist_sha256 = sha256_of_file(o.activations)}};
    check_activations(out.activations, out.head.d_model(), o.activations);
    return out;
  }
  const Stopwatch watch;
  LoadedModel model = load_model(o.model);
  const auto law = load_law(o.dist, model);
  if (o.check_size) o.check_size(o.count, model.config().d_model);
  if (o.check_head) o.check_head(model.head(), model.tokenizer);
  CloudSubject out{
      .head = model.head(),
      .activations = capture_with_progress(model, *law, {.count = o.count, .seed = o.seed}, pool, meter),
      .tokenizer = std::move(model.tokenizer),
      .provenance = provenance_of(model, *law)};
  check_activations(out.activations, out.head.d_model(),
                    fmt::format("activations of {} on {}", o.model, o.dist));
  const double seconds = watch.seconds();
  out.capture_cost = capture_cost(model.config(), *law, out.activations.n, seconds);
  return out;
}

}  // namespace deeptail::cli
