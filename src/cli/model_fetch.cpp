#include "cli/model_fetch.h"

#include "cli/interrupt.h"
#include "cli/output.h"
#include "core/progress.h"
#include "core/screen_text.h"
#include "deeptail/hub.h"

namespace deeptail::cli {

namespace {

struct FetchOptions {
  std::string name;
  bool refresh = false, json = false, quiet = false;
};

HubName hub_name_of(const std::string& name) {
  if (const auto alias = hub_alias(name)) return *alias;
  return parse_hub_name(name);
}

void print_fetched(const HubName& name, const HubFetch& fetched, bool json) {
  if (json)
    return print_json({{"model", name.text()},
                       {"commit", fetched.model.commit},
                       {"path", fetched.model.path},
                       {"files_fetched", fetched.files},
                       {"bytes_fetched", fetched.bytes}});
  const std::string what = fetched.files == 0 ? "nothing was missing"
                                              : fmt::format("{} file{} fetched, {} bytes", fetched.files,
                                                            fetched.files == 1 ? "" : "s",
                                                            short_count(static_cast<double>(fetched.bytes)));
  fmt::print("{}: commit {}, {}\n{}\n", screen_text(name.text(), kAnyWidth), fetched.model.commit, what,
             screen_text(fetched.model.path, kAnyWidth));
}

void fetch(const FetchOptions& o) {
  const HubName name = hub_name_of(o.name);
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet), {.label = name.text(), .unit = "bytes"});
  catch_interrupts();
  const auto fetched = fetch_from_hub(name, o.refresh, shown_until_interrupted(meter));
  meter.clear();
  if (!fetched)
    throw Stopped(kInterrupted,
                  fmt::format("{}: stopped; what came is kept, and the same command continues", name.text()));
  print_fetched(name, *fetched, o.json);
}

}  // namespace

void add_model_fetch(CLI::App& model) {
  const auto o = std::make_shared<FetchOptions>();
  CLI::App* sub =
      model.add_subcommand("fetch", "Download a model of the HuggingFace hub into the HuggingFace cache");
  sub->add_option("NAME", o->name, "hf:ORG/NAME, hf:ORG/NAME@REVISION, hf:ORG/NAME:FILE.gguf, or gelu-1l")
      ->required();
  sub->add_flag("--refresh", o->refresh, "Ask what the revision is now, though the cache knows one");
  sub->add_flag("--json", o->json, "Machine-readable output");
  sub->add_flag("--quiet", o->quiet, "No progress");
  sub->callback([o] { fetch(*o); });
}

}  // namespace deeptail::cli
