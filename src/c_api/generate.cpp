// dt_generate: what `deeptail model generate --json` says.
#include <algorithm>
#include <limits>

#include "c_api/calls.h"
#include "c_api/handles.h"
#include "deeptail/continuation.h"

namespace deeptail::c_api {

namespace {

struct Wanted {
  SamplingConfig sampling = {};
  std::optional<std::size_t> within = {};
  std::uint64_t count = 1, first = 0, seed = 1;
  std::size_t threads = 0;
};

Wanted read_wanted(const JsonNode& json, const LoadedModel& model) {
  expect_keys(json, {"count", "first", "within", "temperature", "top_k", "top_p", "greedy", "stop", "seed",
                     "threads"});
  constexpr std::uint64_t kMostTexts = std::uint64_t{1} << 40, kMostTokens = std::uint64_t{1} << 20;
  Wanted out{
      .first = count_or(json, "first", 0), .seed = count_or(json, "seed", 1), .threads = threads_of(json)};
  if (json.has("count")) out.count = json.at("count").count(0, kMostTexts);
  if (json.has("within")) out.within = json.at("within").count(1, kMostTokens);
  if (json.has("greedy")) out.sampling.greedy = json.at("greedy").boolean();
  out.sampling.temperature = number_or(json, "temperature", 1.0);
  if (json.has("top_k")) out.sampling.top_k = json.at("top_k").count(0, kMostTokens);
  out.sampling.top_p = number_or(json, "top_p", out.sampling.top_p);
  out.sampling.stop = stop_tokens(text_or(json, "stop", ""), model);
  return out;
}

OrderedJson json_of_text(const SaidText& said, bool with_text) {
  OrderedJson out = OrderedJson::object();
  if (with_text) out = {{"prompt", said.prompt}, {"continuation", said.continuation}};
  out.update({{"prompt_tokens", said.prompt_tokens}, {"tokens", said.tokens}, {"stopped", said.stopped}});
  return out;
}

OrderedJson generate(const LoadedModel& model, const InputLaw& law, const JsonNode& json,
                     const Watch& watch) {
  const Wanted wanted = read_wanted(json, model);
  const TextGenerator generator(model, law, wanted.sampling, wanted.within);
  ThreadPool pool(wanted.threads);
  OrderedJson out = OrderedJson::array();
  for (std::uint64_t at = 0; at < wanted.count && goes_on(watch, progress_of(at, wanted.count));) {
    const auto n = std::min<std::uint64_t>(generator.at_once(), wanted.count - at);
    for (const SaidText& said : generator.texts(wanted.seed, wanted.first + at, n, pool))
      out.push_back(json_of_text(said, generator.has_texts()));
    at += n;
  }
  return out;
}

}  // namespace

}  // namespace deeptail::c_api

using namespace deeptail;
using namespace deeptail::c_api;

extern "C" dt_status dt_generate(const dt_model* model, const dt_law* law, const char* settings,
                                 const dt_hooks* hooks, dt_text* out) {
  return guarded([&] {
    require(model, "model");
    require(law, "law");
    const Json document = parse_json(settings == nullptr ? "{}" : settings, "settings");
    OrderedJson found;
    Caller caller(hooks);
    caller.run([&](const Watch& watch) {
      found = generate(model->loaded, *law->law, JsonNode(document, "settings"), watch);
    });
    give_text(json_text(found), out);
  });
}
