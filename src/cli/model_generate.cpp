#include "cli/model_generate.h"

#include <algorithm>

#include "cli/event_flags.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "core/screen_text.h"
#include "deeptail/continuation.h"

namespace deeptail::cli {

namespace {

constexpr std::uint64_t kMostTexts = std::uint64_t{1} << 40;

struct GenerateOptions {
  std::string model, count = "1", within;
  PromptOptions prompts;
  EventOptions sampling;
  std::uint64_t seed = 1;
  std::size_t threads = 0;
  bool json = false;
};

void print_said(const SaidText& said, bool with_text, bool with_prompt, bool json) {
  if (json) {
    OrderedJson out = OrderedJson::object();
    if (with_text) out = {{"prompt", said.prompt}, {"continuation", said.continuation}};
    out.update({{"prompt_tokens", said.prompt_tokens}, {"tokens", said.tokens}, {"stopped", said.stopped}});
    return print_json(out);
  }
  const auto shown = [&](const std::string& text, const std::vector<TokenId>& tokens) {
    return with_text ? screen_text(text, kAnyWidth) : fmt::format("{}", fmt::join(tokens, " "));
  };
  if (with_prompt) fmt::print("{} => ", shown(said.prompt, said.prompt_tokens));
  fmt::print("{}\n", shown(said.continuation, said.tokens));
}

void generate(GenerateOptions o) {
  SamplingConfig sampling = sampling_of(o.sampling);
  std::optional<std::size_t> within;
  if (!o.within.empty()) within = parse_count(o.within, "--within");
  const std::uint64_t count = parse_count(o.count, "--count");
  if (count > kMostTexts) throw InputError("--count {}: expected at most 2^40 texts", count);
  ThreadPool pool(o.threads);
  const LoadedModel model = load_model(o.model);
  sampling.stop = stop_tokens(o.sampling.stop, model);
  if (!o.prompts.prompt && o.prompts.prompts.empty() && o.prompts.dist.empty()) o.prompts.prompt = "";
  const auto law = make_law(o.prompts, model);
  const TextGenerator generator(model, *law, sampling, within);
  for (std::uint64_t first = 0; first < count; first += generator.at_once())
    for (const SaidText& said :
         generator.texts(o.seed, first, std::min<std::uint64_t>(generator.at_once(), count - first), pool))
      print_said(said, generator.has_texts(), !o.prompts.prompt.has_value(), o.json);
}

}  // namespace

void add_model_generate(CLI::App& model) {
  const auto o = std::make_shared<GenerateOptions>();
  CLI::App* sub = model.add_subcommand(
      "generate", "What a model says after a prompt, or after prompts of a law: one line for each text");
  sub->add_option("--model", o->model, "Folder or name of a model, or hf:ORG/NAME")->required();
  add_prompt_flags(*sub, o->prompts);
  sub->add_option("--dist", o->prompts.dist, "Name or file of a law whose inputs are the prompts");
  sub->add_option("--count", o->count, "How many texts, such as 10, 1e6 or 2^20")->capture_default_str();
  sub->add_option("--within", o->within,
                  "New tokens of a text, at most (default: 64, or what the model has room for)")
      ->type_name("COUNT");
  add_sampling_flags(*sub, o->sampling, /*temperature=*/true);
  sub->add_option("--seed", o->seed, "Seed")->capture_default_str();
  sub->add_option("--threads", o->threads, "Threads; 0: one per core")->capture_default_str();
  sub->add_flag("--json", o->json, "One JSON object a line, with token ids");
  sub->callback([o] { generate(*o); });
}

}  // namespace deeptail::cli
