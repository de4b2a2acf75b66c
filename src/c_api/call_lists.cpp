// What there is: models, laws, methods, profiles, counts. And the loss's parameters.
#include <algorithm>
#include <filesystem>
#include <set>

#include "c_api/calls.h"
#include "core/data_places.h"
#include "deeptail/estimators.h"
#include "deeptail/inputs.h"
#include "deeptail/loss.h"
#include "deeptail/method_rows.h"
#include "deeptail/model.h"

namespace deeptail::c_api {

namespace {

namespace fs = std::filesystem;

OrderedJson models() {
  OrderedJson out = OrderedJson::array();
  for (const std::string& folder : list_models()) {
    try {
      const ModelConfig c = read_config(folder);
      out.push_back({{"name", c.model_name},
                     {"folder", folder},
                     {"family", c.family},
                     {"n_layers", c.n_layers},
                     {"d_model", c.d_model},
                     {"n_ctx", c.n_ctx},
                     {"d_vocab", c.d_vocab}});
    } catch (const InputError& e) {  // a broken model among others
      out.push_back(
          {{"name", fs::path(folder).filename().string()}, {"folder", folder}, {"error", e.what()}});
    }
  }
  return out;
}

// Names of the files of one kind, in all places where they are looked for.
OrderedJson files(std::string_view kind) {
  std::set<std::string> seen;
  OrderedJson out = OrderedJson::array();
  for (const fs::path& place : data_places(kind)) {
    std::set<fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(place, error))
      if (entry.path().extension() == ".json") found.insert(entry.path());
    for (const fs::path& path : found)
      if (seen.insert(path.stem().string()).second)
        out.push_back({{"name", path.stem().string()}, {"path", path.string()}});
  }
  return out;
}

OrderedJson methods() {
  OrderedJson out = OrderedJson::array();
  for (const MethodRow* row : method_rows()) {
    OrderedJson settings = OrderedJson::array();
    for (const SettingRow* s : row->settings) {
      OrderedJson words = OrderedJson::array();
      for (const std::string_view word : s->words) words.push_back(word);
      settings.push_back({{"key", s->key},
                          {"help", s->help},
                          {"kind", s->kind == SettingKind::kCount    ? "count"
                                   : s->kind == SettingKind::kNumber ? "number"
                                                                     : "choice"},
                          {"expected", s->expected()},
                          {"words", words},
                          {"default", s->usual},
                          {"about_work", s->about_work}});
    }
    out.push_back({{"name", row->name}, {"help", row->help}, {"settings", settings}});
  }
  return out;
}

OrderedJson all_profiles() {
  OrderedJson out = OrderedJson::array();
  for (const Profile& p : profiles())
    out.push_back({{"name", p.name}, {"alpha", p.alpha}, {"gamma", p.gamma}, {"emphasis", p.emphasis}});
  return out;
}

OrderedJson json_of(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

}  // namespace

OrderedJson list_things(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"what"});
  const std::string what = arguments.at("what").text();
  if (what == "models") return models();
  if (what == "laws") return files("distributions");
  if (what == "truth") return files("truth");
  if (what == "suites") return files("suites");
  if (what == "methods") return methods();
  if (what == "profiles") return all_profiles();
  arguments.at("what").fail_expected("models, laws, methods, profiles, suites or truth");
}

OrderedJson spb_alpha(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"ratio", "m0"});
  return alpha_for_ratio(arguments.at("ratio").number(), arguments.at("m0").number());
}

OrderedJson spb_epsilon(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"alpha", "qmin", "mmax", "m0", "eta", "ratio"});
  EpsilonQuery query;
  query.alpha = number_or(arguments, "alpha", query.alpha);
  query.qmin = number_or(arguments, "qmin", query.qmin);
  query.mmax = number_or(arguments, "mmax", query.mmax);
  query.m0 = number_or(arguments, "m0", query.m0);
  query.eta = number_or(arguments, "eta", query.eta);
  if (arguments.has("ratio")) query.ratio = arguments.at("ratio").number();
  query.validate();
  const EpsilonBounds bounds = epsilon_bounds(query);
  const EpsilonChoice choice = choose_epsilon(query);
  return {{"epsilon", choice.epsilon},
          {"rule", choice.rule},
          {"bounds",
           {{"scale", json_of(bounds.scale)},
            {"asymmetry", json_of(bounds.asymmetry)},
            {"corollary", json_of(bounds.corollary)},
            {"ratio", json_of(bounds.ratio)},
            {"binds", name(bounds.binds)},
            {"heuristic", bounds.heuristic},
            {"ratio_at_m0", json_of(bounds.ratio_at_m0)}}}};
}

}  // namespace deeptail::c_api
