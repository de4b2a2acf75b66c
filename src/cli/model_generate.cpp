#include "cli/model_generate.h"

#include <algorithm>

#include "cli/event_flags.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "core/random.h"
#include "core/screen_text.h"
#include "deeptail/continuation.h"
#include "deeptail/patterns.h"

namespace deeptail::cli {

namespace {

constexpr std::uint64_t kMostTexts = std::uint64_t{1} << 40;
constexpr std::size_t kMostAtOnce = 1024, kMostNumbers = std::size_t{1} << 22, kUsualTokens = 64;

struct GenerateOptions {
  std::string model, count = "1", within;
  PromptOptions prompts;
  EventOptions sampling;
  std::uint64_t seed = 1;
  std::size_t threads = 0;
  bool json = false;
};

// What tokens say, where there is a tokenizer.
class Speech {
 public:
  explicit Speech(const LoadedModel& model) {
    if (!model.tokenizer) return;
    tokenizer_ = &model.tokenizer->tokenizer;
    if (tokenizer_->decodes_by_token()) texts_ = token_texts(*tokenizer_, model.config().d_vocab);
  }
  bool known() const { return tokenizer_ != nullptr; }
  std::string prompt(std::span<const TokenId> tokens) const { return tokenizer_->decode_all(tokens); }
  std::string continuation(std::span<const TokenId> prompt, std::span<const TokenId> said) const {
    return texts_ ? texts_->continuation(prompt, said) : tokenizer_->decode_all(said);
  }

 private:
  const Tokenizer* tokenizer_ = nullptr;
  std::optional<TokenTexts> texts_;
};

struct Said {
  std::span<const TokenId> prompt, tokens;  // a stop token left out
  bool stopped;
};

void print_said(const Said& said, const Speech& speech, bool with_prompt, bool json) {
  const std::string prompt = speech.known() ? speech.prompt(said.prompt) : "";
  const std::string text = speech.known() ? speech.continuation(said.prompt, said.tokens) : "";
  if (json) {
    OrderedJson out = OrderedJson::object();
    if (speech.known()) out = {{"prompt", prompt}, {"continuation", text}};
    out.update({{"prompt_tokens", std::vector(said.prompt.begin(), said.prompt.end())},
                {"tokens", std::vector(said.tokens.begin(), said.tokens.end())},
                {"stopped", said.stopped}});
    return print_json(out);
  }
  if (with_prompt)
    fmt::print("{} => ", speech.known() ? screen_text(prompt, kAnyWidth)
                                        : fmt::format("{}", fmt::join(said.prompt, " ")));
  fmt::print("{}\n",
             speech.known() ? screen_text(text, kAnyWidth) : fmt::format("{}", fmt::join(said.tokens, " ")));
}

// Texts [first, first + n) of the seed: those that plain sampling has there, too.
void generate_some(const LoadedModel& model, const InputLaw& law, const SamplingConfig& sampling,
                   const GenerateOptions& o, std::uint64_t first, std::size_t n, const Speech& speech,
                   ThreadPool& pool) {
  const Inputs prompts = sample_inputs(law, o.seed, first, n, pool);
  std::vector<std::uint64_t> numbers(sampling.greedy ? 0 : n * sampling.max_tokens);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = uniform64({o.seed, Stream::kInputs}, first + i / sampling.max_tokens,
                           static_cast<std::uint32_t>(law.facts().n_parts + i % sampling.max_tokens));
  const Continuations found = continue_texts(model.transformer, sampling, prompts.batch(), numbers, pool);
  for (std::size_t i = 0; i < n; ++i) {
    std::span<const TokenId> tokens = found.of(i);
    const bool stopped = sampling.stops(tokens.back());
    if (stopped) tokens = tokens.first(tokens.size() - 1);
    print_said({prompts.sequence(i), tokens, stopped}, speech, !o.prompts.prompt.has_value(), o.json);
  }
}

void generate(GenerateOptions o) {
  SamplingConfig sampling = sampling_of(o.sampling);
  if (!o.within.empty()) sampling.max_tokens = parse_count(o.within, "--within");
  const std::uint64_t count = parse_count(o.count, "--count");
  if (count > kMostTexts) throw InputError("--count {}: expected at most 2^40 texts", count);
  ThreadPool pool(o.threads);
  const LoadedModel model = load_model(o.model);
  sampling.stop = stop_tokens(o.sampling.stop, model);
  if (!o.prompts.prompt && o.prompts.prompts.empty() && o.prompts.dist.empty()) o.prompts.prompt = "";
  const auto law = make_law(o.prompts, model);
  const std::size_t n_ctx = model.config().n_ctx, given = std::min(law->facts().max_length, n_ctx - 1);
  if (o.within.empty()) sampling.max_tokens = std::clamp<std::size_t>(n_ctx - given, 1, kUsualTokens);
  if (sampling.max_tokens > n_ctx)
    throw InputError("{} new tokens: {} takes at most {}, the prompt's included", sampling.max_tokens,
                     screen_text(model.name), n_ctx);
  const Speech speech(model);
  const std::uint64_t at_once = std::clamp<std::uint64_t>(kMostNumbers / sampling.max_tokens, 1, kMostAtOnce);
  for (std::uint64_t first = 0; first < count; first += at_once)
    generate_some(model, *law, sampling, o, first, std::min(at_once, count - first), speech, pool);
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
