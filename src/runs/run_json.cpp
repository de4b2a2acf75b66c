// run.json and the data lines of shards.
#include <cmath>

#include "core/json_node.h"
#include "runs/run_folder.h"

namespace deeptail {

namespace {

std::uint64_t count_in(const JsonNode& node) { return node.count(0, ~std::uint64_t{0}); }

// "inf" and "-inf" stand for what JSON has no number for.
double number_in(const JsonNode& node) {
  if (node.value() == "inf") return INFINITY;
  if (node.value() == "-inf") return -INFINITY;
  return node.number();
}

double amount_in(const JsonNode& node) {
  const double value = number_in(node);
  if (!(value >= 0.0 && std::isfinite(value))) node.fail_expected("0 or more");
  return value;
}

// The name of a value of the enum.
template <NamedEnum E>
std::string name_in(const JsonNode& node) {
  for (const std::string_view name : EnumNames<E>::kAll)
    if (node.value() == name) return std::string(name);
  node.fail_expected(fmt::format("one of {}", fmt::join(EnumNames<E>::kAll, ", ")));
}

OrderedJson json_of(const std::vector<RunHeader::File>& files) {
  OrderedJson out = OrderedJson::array();
  for (const auto& file : files) out.push_back({{"name", file.name}, {"sha256", file.sha256}});
  return out;
}

std::vector<RunHeader::File> files_of(const JsonNode& node) {
  std::vector<RunHeader::File> out;
  for (const JsonNode& entry : node.elements())
    out.push_back({entry.at("name").text(), entry.at("sha256").sha256()});
  return out;
}

OrderedJson truth_json(const RunItem& item) {
  if (!item.truth_known()) return nullptr;
  return {{"count", item.truth_count}, {"samples", item.truth_samples}};
}

void read_truth_of(const JsonNode& truth, RunItem& item) {
  if (truth.value().is_null()) return;
  item.truth_count = count_in(truth.at("count"));
  item.truth_samples = count_in(truth.at("samples"));
  if (item.truth_samples == 0 || item.truth_count > item.truth_samples)
    throw InputError("{}: expected a count out of at least one sample", truth.where());
}

void read_estimate(const JsonNode& estimate, RunItem& item) {
  constexpr double kLn10 = 2.302585092994045684;
  item.log_p = number_in(estimate.at("log10_p")) * kLn10;
  const JsonNode interval = estimate.at("ci95");
  const auto ends = interval.elements();
  if (ends.size() != 2) interval.fail_expected("two numbers");
  item.log_low = std::log(number_in(ends[0]));
  item.log_high = std::log(number_in(ends[1]));
  if (std::isnan(item.log_p) || std::isnan(item.log_low) || std::isnan(item.log_high))
    throw InputError("{}: expected probabilities that are not negative", estimate.where());
  // Beyond what rounding explains.
  constexpr double kRounding = 1e-9;
  if (item.log_p > kRounding || item.log_high > kRounding || item.log_low > item.log_high + kRounding)
    throw InputError("{}: expected a probability and an interval of at most 1, its lower end first",
                     estimate.where());
  item.status = name_in<Status>(estimate.at("status"));
  item.guarantee = name_in<Guarantee>(estimate.at("guarantee"));
  item.seed = count_in(estimate.at("seed"));
  const JsonNode cost = estimate.at("cost");
  item.cost = {.forward = count_in(cost.at("forward")),
               .backward = count_in(cost.at("backward")),
               .score_evals = count_in(cost.at("score_evals")),
               .logits = count_in(cost.at("logits")),
               .flops = amount_in(cost.at("flops")),
               .forward_equivalents = amount_in(cost.at("forward_equivalents")),
               .seconds = amount_in(cost.at("seconds"))};
  for (const JsonNode& warning : estimate.at("warnings").elements()) item.warnings.push_back(warning.text());
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
  const JsonNode root(json, where);
  RunHeader h{.schema = count_in(root.at("schema"))};
  if (h.schema != kRunSchema)
    throw InputError(
        "{}: key \"schema\": expected {}, found {}: the run was made by another version of deeptail", where,
        kRunSchema, h.schema);
  h.version = root.at("deeptail").text();
  const JsonNode suite = root.at("suite");
  h.suite_name = suite.at("name").text();
  h.suite_sha256 = suite.at("sha256").sha256();
  h.suite_text = suite.at("text").text();
  for (const JsonNode& profile : root.at("profiles").elements()) h.profiles.push_back(profile.text());
  for (const JsonNode& m : root.at("models").elements())
    h.models.push_back({.name = m.at("name").text(),
                        .sha256 = m.at("sha256").sha256(),
                        .n_layers = count_in(m.at("n_layers")),
                        .d_model = count_in(m.at("d_model")),
                        .d_vocab = count_in(m.at("d_vocab"))});
  h.distributions = files_of(root.at("distributions"));
  h.truths = files_of(root.at("truths"));
  if (root.has("temperatures")) h.temperatures = files_of(root.at("temperatures"));
  h.items = count_in(root.at("items"));
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
  const JsonNode root(json, where);
  RunItem item{.id = root.at("item").text(),
               .model = root.at("model").text(),
               .dist = root.at("dist").text(),
               .target_text = root.at("target_text").text(),
               .method = root.at("method").text(),
               .variant = root.at("variant").text()};
  item.target = root.at("target").token_ids(1 << 24);
  if (item.target.empty()) root.at("target").fail_expected("at least one token id");
  item.replica = count_in(root.at("replica"));
  item.seconds = amount_in(root.at("seconds"));
  item.calibration_seed = count_in(root.at("calibration_seed"));
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
