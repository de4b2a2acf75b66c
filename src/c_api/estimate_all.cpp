// dt_estimate_all: what `deeptail estimate --all --json` answers.
#include "c_api/asked.h"
#include "c_api/caller.h"
#include "core/json.h"
#include "deeptail/all_tokens.h"

namespace deeptail::c_api {

namespace {

std::string all_json(const AllTokens& all, const LoadedModel& model) {
  std::vector<std::string> lines;
  for (const Estimate& e : all.rows) lines.push_back(estimate_line(e, model.tokenizer));
  return fmt::format("{{\"rows\":[{}],\"rest\":{}}}", fmt::join(lines, ","), rest_json(all));
}

std::string estimate_every_token(const LoadedModel& model, const InputLaw& law, std::string_view settings,
                                 const dt_hooks* hooks) {
  const AskedSettings given = read_settings(settings);
  if (!given.method.empty() && given.method != "all-tokens")
    throw InputError("method {}: expected none but all-tokens", printable(given.method));
  AllTokensAsked asked = read_all_tokens(given.given);
  asked.config.seed = given.seed;
  require_device(asked.device);
  AllTokens all;
  Caller caller(hooks);
  caller.run([&](const Watch& watch) {
    ThreadPool pool(given.threads);
    all = estimate_all(model, law, asked.config, pool, watch, asked.device);
  });
  return all_json(all, model);
}

}  // namespace

}  // namespace deeptail::c_api

using namespace deeptail;
using namespace deeptail::c_api;

extern "C" dt_status dt_estimate_all(const dt_model* model, const dt_law* law, const char* settings,
                                     const dt_hooks* hooks, dt_text* out) {
  return guarded([&] {
    require(model, "model");
    require(law, "law");
    give_text(estimate_every_token(model->loaded, *law->law, settings == nullptr ? "" : settings, hooks),
              out);
  });
}
