// run.json and the data lines of shards.
#include <cmath>

#include "bench/run_folder.h"
#include "core/json.h"
#include "core/sha256.h"

namespace deeptail {

namespace {

// A member of an object that must be there, with the way to it for messages.
struct RunNode {
  const Json& json;
  std::string where;

  RunNode at(const char* key) const {
    const auto found = json.is_object() ? json.find(key) : json.end();
    if (!json.is_object() || found == json.end()) throw InputError("{}: key \"{}\" is missing", where, key);
    return {*found, fmt::format("{}: key \"{}\"", where, key)};
  }
  std::vector<RunNode> elements() const {
    if (!json.is_array()) throw InputError("{}: expected an array", where);
    std::vector<RunNode> out;
    for (const Json& element : json) out.push_back({element, fmt::format("{}[{}]", where, out.size())});
    return out;
  }
  std::string text() const {
    if (!json.is_string()) throw InputError("{}: expected text", where);
    return json.get<std::string>();
  }
  std::string sha256() const {
    std::string value = text();
    if (!is_sha256_hex(value)) throw InputError("{}: expected 64 lower-case hex digits", where);
    return value;
  }
  std::uint64_t count() const {
    if (!json.is_number_unsigned()) throw InputError("{}: expected a whole number", where);
    return json.get<std::uint64_t>();
  }
  // "inf" and "-inf" stand for what JSON has no number for.
  double number() const {
    if (json.is_number()) return json.get<double>();
    if (json == "inf") return INFINITY;
    if (json == "-inf") return -INFINITY;
    throw InputError("{}: expected a number", where);
  }
  double amount() const {
    const double value = number();
    if (!(value >= 0.0 && std::isfinite(value))) throw InputError("{}: expected 0 or more", where);
    return value;
  }
  // The name of a value of the enum.
  template <NamedEnum E>
  std::string name_in() const {
    for (const std::string_view name : EnumNames<E>::kAll)
      if (json == name) return std::string(name);
    throw InputError("{}: expected one of {}", where, fmt::join(EnumNames<E>::kAll, ", "));
  }
};

OrderedJson json_of(const std::vector<RunHeader::File>& files) {
  OrderedJson out = OrderedJson::array();
  for (const auto& file : files) out.push_back({{"name", file.name}, {"sha256", file.sha256}});
  return out;
}

std::vector<RunHeader::File> files_of(const RunNode& node) {
  std::vector<RunHeader::File> out;
  for (const RunNode& entry : node.elements())
    out.push_back({entry.at("name").text(), entry.at("sha256").sha256()});
  return out;
}

OrderedJson truth_json(const RunItem& item) {
  if (!item.truth_known()) return nullptr;
  return {{"count", item.truth_count}, {"samples", item.truth_samples}};
}

void read_truth_of(const RunNode& truth, RunItem& item) {
  if (truth.json.is_null()) return;
  item.truth_count = truth.at("count").count();
  item.truth_samples = truth.at("samples").count();
  if (item.truth_samples == 0 || item.truth_count > item.truth_samples)
    throw InputError("{}: expected a count out of at least one sample", truth.where);
}

void read_estimate(const RunNode& estimate, RunItem& item) {
  constexpr double kLn10 = 2.302585092994045684;
  item.log_p = estimate.at("log10_p").number() * kLn10;
  const auto ends = estimate.at("ci95").elements();
  if (ends.size() != 2) throw InputError("{}: key \"ci95\": expected two numbers", estimate.where);
  item.log_low = std::log(ends[0].number());
  item.log_high = std::log(ends[1].number());
  if (std::isnan(item.log_p) || std::isnan(item.log_low) || std::isnan(item.log_high))
    throw InputError("{}: expected probabilities that are not negative", estimate.where);
  // Beyond what rounding explains.
  constexpr double kRounding = 1e-9;
  if (item.log_p > kRounding || item.log_high > kRounding || item.log_low > item.log_high + kRounding)
    throw InputError("{}: expected a probability and an interval of at most 1, its lower end first",
                     estimate.where);
  item.status = estimate.at("status").name_in<Status>();
  item.guarantee = estimate.at("guarantee").name_in<Guarantee>();
  item.seed = estimate.at("seed").count();
  const RunNode cost = estimate.at("cost");
  item.cost = {.forward = cost.at("forward").count(),
               .backward = cost.at("backward").count(),
               .score_evals = cost.at("score_evals").count(),
               .logits = cost.at("logits").count(),
               .flops = cost.at("flops").amount(),
               .forward_equivalents = cost.at("forward_equivalents").amount(),
               .seconds = cost.at("seconds").amount()};
  for (const RunNode& warning : estimate.at("warnings").elements()) item.warnings.push_back(warning.text());
}

}  // namespace

std::string to_json(const RunHeader& h) {
  OrderedJson models = OrderedJson::array();
  for (const auto& m : h.models)
    models.push_back({{"name", m.name},
                      {"sha256", m.sha256},
                      {"n_layers", m.n_layers},
                      {"d_model", m.d_model},
                      {"d_vocab", m.d_vocab}});
  const OrderedJson out = {
      {"schema", h.schema},
      {"deeptail", h.version},
      {"suite", {{"name", h.suite_name}, {"sha256", h.suite_sha256}, {"text", h.suite_text}}},
      {"profiles", h.profiles},
      {"models", models},
      {"distributions", json_of(h.distributions)},
      {"truths", json_of(h.truths)},
      {"temperatures", json_of(h.temperatures)},
      {"items", h.items},
      {"device", h.device},
      {"created", h.created}};
  return json_text(out, 1) + "\n";
}

RunHeader parse_run_header(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const RunNode root{json, std::string(where)};
  RunHeader h{.schema = root.at("schema").count()};
  if (h.schema != kRunSchema)
    throw InputError(
        "{}: key \"schema\": expected {}, found {}: the run was made by another version of deeptail", where,
        kRunSchema, h.schema);
  h.version = root.at("deeptail").text();
  const RunNode suite = root.at("suite");
  h.suite_name = suite.at("name").text();
  h.suite_sha256 = suite.at("sha256").sha256();
  h.suite_text = suite.at("text").text();
  for (const RunNode& profile : root.at("profiles").elements()) h.profiles.push_back(profile.text());
  for (const RunNode& m : root.at("models").elements())
    h.models.push_back({.name = m.at("name").text(),
                        .sha256 = m.at("sha256").sha256(),
                        .n_layers = m.at("n_layers").count(),
                        .d_model = m.at("d_model").count(),
                        .d_vocab = m.at("d_vocab").count()});
  h.distributions = files_of(root.at("distributions"));
  h.truths = files_of(root.at("truths"));
  if (json.contains("temperatures")) h.temperatures = files_of(root.at("temperatures"));
  h.items = root.at("items").count();
  h.device = root.at("device").text();
  h.created = root.at("created").text();
  return h;
}

std::string data_line(const RunItem& item, std::string_view estimate) {
  const OrderedJson out = {{"item", item.id},
                           {"model", item.model},
                           {"dist", item.dist},
                           {"target", item.target},
                           {"target_text", item.target_text},
                           {"method", item.method},
                           {"variant", item.variant},
                           {"replica", item.replica},
                           {"seconds", item.seconds},
                           {"calibration_seed", item.calibration_seed},
                           {"truth", truth_json(item)}};
  std::string line = json_text(out);
  line.pop_back();
  return fmt::format("{},\"estimate\":{}}}", line, estimate);
}

RunItem parse_data_line(std::string_view line, std::string_view where) {
  const Json json = parse_json(line, where);
  const RunNode root{json, std::string(where)};
  RunItem item{.id = root.at("item").text(),
               .model = root.at("model").text(),
               .dist = root.at("dist").text(),
               .target_text = root.at("target_text").text(),
               .method = root.at("method").text(),
               .variant = root.at("variant").text()};
  for (const RunNode& token : root.at("target").elements()) {
    const std::uint64_t id = token.count();
    if (id >= 1 << 24) throw InputError("{}: expected a token id", token.where);
    item.target.push_back(static_cast<TokenId>(id));
  }
  if (item.target.empty()) throw InputError("{}: key \"target\": expected at least one token id", where);
  item.replica = root.at("replica").count();
  item.seconds = root.at("seconds").amount();
  item.calibration_seed = root.at("calibration_seed").count();
  read_truth_of(root.at("truth"), item);
  read_estimate(root.at("estimate"), item);
  return item;
}

bool same_result(std::string_view a, std::string_view b, std::string_view where) {
  if (a == b) return true;
  const auto timeless = [&](std::string_view line) {
    Json json = parse_json(line, where);
    if (json.is_object()) json.erase("seconds");
    if (json.is_object() && json.contains("estimate") && json["estimate"].is_object() &&
        json["estimate"].contains("cost") && json["estimate"]["cost"].is_object())
      json["estimate"]["cost"].erase("seconds");
    return json;
  };
  return timeless(a) == timeless(b);
}

}  // namespace deeptail
