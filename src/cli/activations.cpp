// deeptail activations capture
#include "cli/cloud_subject.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/read_files.h"
#include "core/json.h"
#include "core/screen_text.h"
#include "core/write_file.h"

namespace deeptail::cli {

namespace {

struct CaptureOptions {
  std::string model, dist, count = "2^16", out, unembed_out;
  std::uint64_t seed = 1;
  bool quiet = false;
};

void run_capture(const CaptureOptions& o) {
  const CaptureConfig config{.count = parse_count(o.count, "--count"), .seed = o.seed};
  config.validate();
  ReadFiles reads;
  reads.add_subject(o.model, o.dist);
  reads.refuse_output(o.out);
  check_writable(o.out);
  if (!o.unembed_out.empty()) {
    reads.refuse_output(o.unembed_out);
    check_writable(o.unembed_out);
    check_distinct(o.out, o.unembed_out);
  }
  ThreadPool pool;
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet), {.label = fmt::format("loading {}", o.model)});
  const LoadedModel model = load_model(o.model);
  const auto law = load_law(o.dist, model);
  catch_interrupts();
  const Activations activations = capture_with_progress(model, *law, config, pool, meter);
  meter.clear();
  check_finite(activations,
               fmt::format("model {} on {}", printable(model.name), printable(law->facts().name)));
  write_activations(o.out, activations);
  if (!o.unembed_out.empty()) save_head(o.unembed_out, model.head());
  if (o.quiet) return;
  fmt::print("{}: {} activations [{}] of {} on {}, before ln_final\n", screen_text(o.out, kAnyWidth),
             activations.n, activations.d_model, screen_text(model.name), screen_text(law->facts().name));
  if (!o.unembed_out.empty())
    fmt::print("{}: ln_final and unembedding, {} tokens\n", o.unembed_out, model.head().d_vocab());
}

}  // namespace

void add_activations(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("activations", "Final residuals at the last position, before ln_final");
  sub->require_subcommand(1);
  CLI::App* command = sub->add_subcommand("capture", "Writes the activations of sampled inputs");
  const auto o = std::make_shared<CaptureOptions>();
  command->add_option("--model", o->model, "Folder or name of a model, or hf:ORG/NAME")->required();
  command->add_option("--dist", o->dist, "Name or file of a distribution")->required();
  command->add_option("--count", o->count, "Inputs, such as 2^16 or 1e6")->capture_default_str();
  command->add_option("--out", o->out, "NumPy file [count, d_model] to write")->required();
  command->add_option("--unembed-out", o->unembed_out, "safetensors file for ln_final and W_U");
  command->add_option("--seed", o->seed, "Seed")->capture_default_str();
  command->add_flag("--quiet", o->quiet, "No progress");
  command->callback([o] { run_capture(*o); });
}

}  // namespace deeptail::cli
