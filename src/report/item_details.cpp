// What the page tells about a single estimate: inputs that trigger the event, levels, and how to repeat it.
#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "deeptail/report.h"
#include "runs/run_folder.h"
#include "runs/suite.h"

namespace deeptail {

namespace {

constexpr std::size_t kTriggers = 3, kTriggerLength = 160, kLevels = 48;

// In single quotes where a shell would read more than letters. Text that needs more than that is left alone.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./:,=@%^";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The suite's settings as flags, and its models and distributions as the suite writes them.
class Commands {
 public:
  explicit Commands(const RunHeader& header) {
    try {
      suite_ =
          parse_suite(header.suite_text, "suite", header.device == "cuda" ? Device::kCuda : Device::kCpu);
    } catch (const InputError&) {
      return;  // another version's suite, or text that several runs share
    }
    for (std::size_t i = 0; i < std::min(header.models.size(), suite_.models.size()); ++i)
      models_[header.models[i].name] = suite_.models[i];
    for (std::size_t i = 0; i < std::min(header.distributions.size(), suite_.distributions.size()); ++i)
      dists_[header.distributions[i].name] = suite_.distributions[i];
  }
  std::string of(const RunItem& item) const {
    const auto variant = std::find_if(suite_.variants.begin(), suite_.variants.end(),
                                      [&](const SuiteVariant& v) { return v.label == item.variant; });
    if (variant == suite_.variants.end()) return "";
    std::string out = fmt::format("deeptail estimate --model {} --dist {} --target {} --method {}",
                                  name(models_, item.model), name(dists_, item.dist),
                                  fmt::join(item.target, ","), shell_word(variant->method.name));
    for (const Setting& setting : variant->method.given)
      out +=
          fmt::format(" {} {}", variant->method.row->setting(setting.key)->flag(), shell_word(setting.value));
    out += fmt::format(" --seed {}", item.seed);
    if (variant->method.needs_activations())
      out += fmt::format(" --calibration-seed {}", item.calibration_seed);
    return out;
  }

 private:
  using Names = std::map<std::string, std::string>;
  static std::string name(const Names& names, const std::string& key) {
    const auto found = names.find(key);
    return shell_word(found == names.end() ? key : found->second);
  }
  Suite suite_;
  Names models_, dists_;
};

const Json* member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}

void read_triggers(const Json* triggers, ItemDetail& out) {
  if (triggers == nullptr || !triggers->is_array()) return;
  out.n_triggers = triggers->size();
  for (std::size_t i = 0; i < std::min(kTriggers, triggers->size()); ++i) {
    const Json *text = member((*triggers)[i], "text"), *tokens = member((*triggers)[i], "tokens");
    std::string shown = text != nullptr && text->is_string() ? text->get<std::string>() : "";
    if (shown.empty() && tokens != nullptr) shown = json_text(*tokens);
    if (shown.size() > kTriggerLength) {
      std::size_t end = kTriggerLength;
      while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0) == 0x80) --end;  // whole characters
      shown = shown.substr(0, end) + "…";
    }
    out.triggers.push_back(std::move(shown));
  }
}

void read_levels(const Json* levels, ItemDetail& out) {
  if (levels == nullptr || !levels->is_array()) return;
  const auto number = [](const Json& level, const char* key) {
    const Json* found = member(level, key);
    return found != nullptr && found->is_number() ? found->get<double>() : NAN;
  };
  for (const Json& level : *levels) {
    if (out.survive_fraction.size() == kLevels) break;
    out.survive_fraction.push_back(number(level, "survive_fraction"));
    out.acceptance.push_back(number(level, "acceptance"));
  }
  out.n_levels = levels->size();
}

}  // namespace

ItemDetails read_item_details(const std::string& folder) {
  const RunText run = run_text(folder);
  const Commands commands(parse_run_header(run.header, run.header_path));
  ItemDetails out;
  for (const auto& [path, text] : run.shards) {
    for (const ShardScan::Entry& entry : scan_shard(text, path).committed) {
      const auto [place, fresh] = out.try_emplace(entry.id);
      if (!fresh) continue;
      const std::string where = fmt::format("{} line {}", path, entry.line);
      const Json json = parse_json(entry.data, where);
      if (const Json* estimate = member(json, "estimate")) {
        read_triggers(member(*estimate, "triggers"), place->second);
        read_levels(member(*estimate, "levels"), place->second);
      }
      place->second.command = commands.of(parse_data_line(entry.data, where));
    }
  }
  return out;
}

}  // namespace deeptail
