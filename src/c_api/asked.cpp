#include "c_api/asked.h"

#include <algorithm>

#include "core/json_node.h"
#include "core/nearest.h"
#include "events/event_json.h"

namespace deeptail::c_api {

namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

// As make_method takes it: 30000, 2^18, auto.
std::string setting_text(const JsonNode& node) {
  const Json& value = node.value();
  if (value.is_string()) return node.text();
  if (value.is_number_unsigned()) return fmt::format("{}", value.get<std::uint64_t>());
  if (value.is_number()) return fmt::format("{}", value.get<double>());
  node.fail_expected("a number or a word");
}

std::vector<Setting> settings_for(const MethodRow& row, std::vector<Setting> given) {
  std::erase_if(given, [&](const Setting& s) { return row.setting(s.key) == nullptr; });
  return given;
}

const SettingRow& setting_row(const std::string& key) {
  std::vector<std::string> known = {"method", "seed", "threads", "calibration_seed"};
  for (const SettingRow* row : setting_rows()) {
    if (row->key == key) return *row;
    known.emplace_back(row->key);
  }
  throw InputError("unknown setting {}{}", printable(key), did_you_mean(key, known));
}

}  // namespace

AskedSettings read_settings(std::string_view text) {
  const Json document = parse_json(text.empty() ? "{}" : text, "settings");
  const JsonNode json(document, "settings");
  json.expect_object();
  AskedSettings out;
  for (const auto& [key, value] : document.items()) {
    const JsonNode node(value, "settings", key);
    if (value.is_null()) continue;
    if (key == "method")
      out.method = node.text();
    else if (key == "seed")
      out.seed = node.count(0, kLargest);
    else if (key == "threads")
      out.threads = node.count(0, ThreadPool::kMostThreads);
    else if (key == "calibration_seed")
      out.calibration_seed = node.count(0, kLargest);
    else if (key == "model_name")
      out.model_name = node.text();
    else if (key == "dist_name")
      out.dist_name = node.text();
    else {
      const std::string given = setting_text(node);
      setting_row(key).check(given, key);
      // Every method runs on the CPU, so asking for it tells a method nothing.
      if (key != "device" || given != "cpu") out.given.push_back({key, given, key});
    }
  }
  return out;
}

Method AskedSettings::make(const Events& events) {
  const bool sampled = events.front()->answer_length() > 0;
  if (method.empty()) method = sampled ? "auto" : "tokensplit";
  Method out = make_method(method, settings_for(method_row(method), given));
  for (const Setting& s : given)
    if (s.key == "device" && s.value != name_of(out.device))
      throw DeviceError(*value_named<Device>(s.value), fmt::format("{} runs on the CPU only", method));
  require_device(out.device);
  return out;
}

void AskedSettings::warn_of_unused(const Method& used, Estimate& estimate) const {
  for (const Setting& s : given)
    if (!used.takes(s.key)) estimate.warnings.push_back(fmt::format("{} has no effect on {}", s.key, method));
}

const Head& head_of(const dt_question& q) {
  if (q.head != nullptr) return q.head->head;
  if (q.model == nullptr) throw InputError("expected a model and a law, or activations and a head");
  return q.model->loaded.head();
}

const std::optional<NamedTokenizer>& tokenizer_of(const dt_question& q) {
  static const std::optional<NamedTokenizer> none;
  return q.model != nullptr ? q.model->loaded.tokenizer : none;
}

Events read_events(const dt_question& q) {
  const Json document = parse_json(given_text(q.events, "events"), "events");
  Events out;
  for (const JsonNode& event : JsonNode(document, "events").elements())
    out.push_back(event_of_json(event, q.model == nullptr ? nullptr : &q.model->loaded, head_of(q)));
  if (out.empty()) throw InputError("events: expected at least one, found none");
  return out;
}

std::string estimate_line(Estimate e, const std::optional<NamedTokenizer>& tokenizer) {
  decode_tokens(e, tokenizer);
  OrderedJson texts(nullptr);
  if (tokenizer) texts = OrderedJson::array();
  for (std::size_t i = 0; tokenizer && i < e.target.size(); ++i) {
    const auto id = e.target[i];
    std::string text;
    try {
      text = tokenizer->tokenizer.bytes_of(id);
    } catch (const InputError&) {  // tokenizers with gaps have ids without a token
    }
    texts.push_back(text);
  }
  std::string line = to_json(e);
  line.pop_back();
  return fmt::format("{},\"target_text\":{}}}", line, json_text(texts));
}

}  // namespace deeptail::c_api
