// The only file that sees toml++, which takes long to compile.
#include "runs/suite.h"

#include <toml++/toml.h>
#include <algorithm>
#include <set>

#include "core/json.h"
#include "core/parse_count.h"
#include "core/sha256.h"
#include "deeptail/loss.h"
#include "runs/toml_keys.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxVariants = 1000;      // of one entry of [[methods]]
constexpr std::size_t kMaxAllVariants = 10000;  // of a suite

// A value with the way to it, for messages.
struct SuiteNode {
  const toml::node* node;
  std::string file, key;

  std::string where() const { return fmt::format("{}: line {}: {}", file, node->source().begin.line, key); }

  // As the settings of a method are written: text.
  std::string scalar() const {
    if (const auto text = node->value_exact<std::string>()) return *text;
    if (const auto whole = node->value_exact<std::int64_t>()) return fmt::format("{}", *whole);
    if (const auto real = node->value_exact<double>()) return fmt::format("{}", *real);
    if (const auto flag = node->value_exact<bool>()) return *flag ? "true" : "false";
    throw InputError("{}: expected text or a number", where());
  }
  std::string text() const {
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty()) throw InputError("{}: expected text in quotes", where());
    return *value;
  }
  std::uint64_t count() const { return parse_count(scalar(), where()); }
  std::uint64_t seed() const {
    const auto value = node->value_exact<std::int64_t>();
    if (!value || *value < 0) throw InputError("{}: expected a whole number of 0 or more", where());
    return static_cast<std::uint64_t>(*value);
  }
  double probability() const {
    const auto value = node->value<double>();
    if (!value || !(*value > 0.0 && *value <= 1.0))
      throw InputError("{}: expected a number above 0, at most 1", where());
    return *value;
  }
  std::vector<SuiteNode> elements() const {
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty()) throw InputError("{}: expected a list, in brackets", where());
    std::vector<SuiteNode> out;
    for (const toml::node& element : *array) out.push_back({&element, file, key});
    return out;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const SuiteNode& element : elements()) {
      const std::string name = element.text();
      if (std::find(out.begin(), out.end(), name) != out.end())
        throw InputError("{}: \"{}\" is there twice", element.where(), printable(name));
      out.push_back(name);
    }
    return out;
  }
};

// A table whose keys must all be asked for.
class SuiteTable {
 public:
  SuiteTable(const SuiteNode& node, std::string prefix) : node_(node), prefix_(std::move(prefix)) {
    if (!node.node->is_table()) throw InputError("{}: expected a table of keys and values", node.where());
  }
  std::optional<SuiteNode> find(const char* key) {
    known_.insert(key);
    const toml::node* found = node_.node->as_table()->get(key);
    if (found == nullptr) return std::nullopt;
    return SuiteNode{found, node_.file, prefix_ + key};
  }
  SuiteNode need(const char* key) {
    if (auto found = find(key)) return *found;
    throw InputError("{}: line {}: key \"{}{}\" is missing", node_.file, node_.node->source().begin.line,
                     prefix_, key);
  }
  // What nobody asked for, in the order of the file.
  std::vector<SuiteNode> others() const {
    std::vector<SuiteNode> out;
    for (const auto& [key, value] : *node_.node->as_table())
      if (!known_.contains(std::string(key.str())))
        out.push_back({&value, node_.file, prefix_ + std::string(key.str())});
    const auto place = [](const SuiteNode& n) { return n.node->source().begin; };
    std::sort(out.begin(), out.end(),
              [&](const SuiteNode& a, const SuiteNode& b) { return place(a) < place(b); });
    return out;
  }
  void refuse_others() const {
    for (const SuiteNode& other : others())
      throw InputError("{}: unknown key; expected {}", other.where(), fmt::join(known_, ", "));
  }

 private:
  SuiteNode node_;
  std::string prefix_;
  std::set<std::string> known_;
};

SuiteToken parse_suite_token(const SuiteNode& node) {
  if (const auto id = node.node->value_exact<std::int64_t>(); id && *id >= 0)
    return {.id = static_cast<std::uint64_t>(*id), .where = node.where()};
  const auto text = node.node->value_exact<std::string>();
  if (!text || text->empty())
    throw InputError("{}: expected the id of a token, such as 310, or its text in quotes", node.where());
  return {.text = *text, .where = node.where()};
}

void parse_band(SuiteTable& table, SuiteTargets& out) {
  const SuiteNode band = table.need("band");
  const auto ends = band.elements();
  if (ends.size() != 2)
    throw InputError("{}: expected two probabilities, found {}", band.where(), ends.size());
  out.q_low = ends[0].probability();
  out.q_high = ends[1].probability();
  if (out.q_low > out.q_high) throw InputError("{}: expected the smaller probability first", band.where());
  out.count = table.need("count").count();
  if (const auto seed = table.find("seed")) out.seed = seed->seed();
}

SuiteTargets parse_targets(const SuiteNode& node) {
  SuiteTable table(node, "targets.");
  SuiteTargets out;
  const auto tokens = table.find("tokens");
  const auto truth = table.find("truth");
  if (truth) out.truth = truth->text();
  if (tokens) {
    for (const SuiteNode& token : tokens->elements()) out.tokens.push_back(parse_suite_token(token));
    out.truth_needed = truth.has_value();
    for (const char* key : {"band", "count", "seed"})
      if (const auto other = table.find(key))
        throw InputError("{}: chooses targets, but tokens names them; expected one of the two",
                         other->where());
  } else {
    parse_band(table, out);
  }
  table.refuse_others();
  return out;
}

// What the whole suite says about its methods.
struct MethodDefaults {
  std::optional<SuiteNode> budget;
  Device device;
  std::vector<Setting> band = {};  // of the targets, for the method that has bounds
};

std::vector<Setting> bounds_of(const SuiteTargets& targets, const std::string& where) {
  if (!targets.tokens.empty() || targets.q_low == targets.q_high) return {};
  const std::string band = where + ": targets.band";
  return {{"above", fmt::format("{}", targets.q_low), band},
          {"below", fmt::format("{}", targets.q_high), band}};
}

Method method_of(const SuiteNode& name, std::vector<Setting> settings, const MethodDefaults& defaults) {
  const MethodRow* row = find_method_row(name.text());
  const auto takes = [&](const char* key) {
    const auto is_key = [&](const Setting& x) { return x.key == key; };
    return row != nullptr && row->setting(key) != nullptr &&
           std::none_of(settings.begin(), settings.end(), is_key);
  };
  if (const auto& budget = defaults.budget; budget && takes("budget"))
    settings.push_back({"budget", budget->scalar(), budget->where()});
  if (defaults.device != Device::kCpu && takes("device"))
    settings.push_back({"device", std::string(name_of(defaults.device)), "device"});
  for (const Setting& bound : defaults.band)
    if (takes(bound.key.c_str())) settings.push_back(bound);
  return make_method(name.text(), settings, name.where());
}

// A key of [[methods]] and its value or, where they are a list, its values.
struct SuiteSetting {
  SuiteNode node;
  bool is_list;
  std::vector<SuiteNode> values;

  explicit SuiteSetting(const SuiteNode& n)
      : node(n), is_list(n.node->is_array()), values(is_list ? n.elements() : std::vector{n}) {}
  Setting with(const SuiteNode& value) const {
    return {node.key.substr(std::string_view("methods.").size()), value.scalar(), value.where()};
  }
};

// A variant before its settings are looked at.
struct VariantDraft {
  std::string label;
  std::vector<Setting> settings;
};

// Every combination of the values is a variant.
std::vector<VariantDraft> swept(const std::string& label, const std::vector<SuiteSetting>& settings) {
  std::vector<VariantDraft> drafts = {{label, {}}};
  for (const SuiteSetting& setting : settings) {
    if (setting.values.size() > kMaxVariants / drafts.size())
      throw InputError("{}: more than {} combinations of the settings that are lists", setting.node.where(),
                       kMaxVariants);
    std::vector<VariantDraft> next;
    for (const VariantDraft& draft : drafts)
      for (const SuiteNode& value : setting.values) {
        next.push_back(draft);
        if (setting.is_list) next.back().label = fmt::format("{}/{}", draft.label, value.scalar());
        next.back().settings.push_back(setting.with(value));
      }
    drafts = std::move(next);
  }
  return drafts;
}

// One entry of [[methods]].
void add_variants(const SuiteNode& node, const MethodDefaults& defaults, std::set<std::string>& labels,
                  std::vector<SuiteVariant>& out) {
  SuiteTable table(node, "methods.");
  const SuiteNode name = table.need("method");
  const auto label = table.find("variant");
  std::vector<SuiteSetting> settings;
  std::vector<Setting> first;
  for (const SuiteNode& other : table.others()) {
    settings.emplace_back(other);
    first.push_back(settings.back().with(settings.back().values.front()));
  }
  method_of(name, first, defaults);  // unknown keys are told before any number of them is combined
  const std::vector<VariantDraft> drafts = swept(label ? label->text() : name.text(), settings);
  if (out.size() + drafts.size() > kMaxAllVariants)
    throw InputError("{}: more than {} rows in the whole suite", name.where(), kMaxAllVariants);
  for (const VariantDraft& draft : drafts) {
    out.push_back({draft.label, method_of(name, draft.settings, defaults)});
    if (!labels.insert(draft.label).second)
      throw InputError("{}: two rows are called {}; give this one another name with variant = \"...\"",
                       name.where(), printable(draft.label));
  }
}

}  // namespace

Suite parse_suite(std::string_view text, const std::string& where, Device device) {
  check_toml_keys(text, where);
  toml::table root;
  try {
    root = toml::parse(text, where);
  } catch (const toml::parse_error& e) {
    throw InputError("{}: line {}: not valid TOML: {}", where, e.source().begin.line, e.description());
  }
  SuiteTable table({&root, where, ""}, "");
  Suite suite{.name = table.need("name").text(), .text = std::string(text), .sha256 = sha256_hex(text)};
  suite.models = table.need("models").names();
  suite.distributions = table.need("distributions").names();
  suite.targets = parse_targets(table.need("targets"));
  if (const auto replicas = table.find("replicas")) suite.replicas = replicas->count();
  if (const auto seed = table.find("seed")) suite.seed = seed->seed();
  const auto budget = table.find("budget");
  if (budget) budget->count();
  if (const auto names = table.find("profiles")) {
    suite.profiles = names->names();
    for (const std::string& name : suite.profiles) try {
        find_profile(name);
      } catch (const InputError& e) {
        throw InputError("{}: {}", names->where(), e.what());
      }
  } else {
    for (const Profile& profile : profiles()) suite.profiles.emplace_back(profile.name);
  }
  std::set<std::string> labels;
  for (const SuiteNode& method : table.need("methods").elements())
    add_variants(method, {budget, device, bounds_of(suite.targets, where)}, labels, suite.variants);
  table.refuse_others();
  return suite;
}

Suite read_suite(const std::string& path, Device device) {
  const InputFile file(path);
  return parse_suite(file.text(), path, device);
}

}  // namespace deeptail
