// The only file that sees toml++, which takes long to compile.
#include "bench/suite.h"

#include <toml++/toml.h>
#include <algorithm>
#include <set>

#include "core/json.h"
#include "core/parse_count.h"
#include "core/sha256.h"
#include "deeptail/loss.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxVariants = 1000;

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

SuiteTargets parse_targets(const SuiteNode& node) {
  SuiteTable table(node, "targets.");
  SuiteTargets out;
  const SuiteNode band = table.need("band");
  const auto ends = band.elements();
  if (ends.size() != 2)
    throw InputError("{}: expected two probabilities, found {}", band.where(), ends.size());
  out.q_low = ends[0].probability();
  out.q_high = ends[1].probability();
  if (out.q_low > out.q_high) throw InputError("{}: expected the smaller probability first", band.where());
  out.count = table.need("count").count();
  if (const auto seed = table.find("seed")) out.seed = seed->seed();
  if (const auto truth = table.find("truth")) out.truth = truth->text();
  table.refuse_others();
  return out;
}

// One entry of [[methods]]; settings that are lists are swept: every combination is a variant.
void add_variants(const SuiteNode& node, const std::optional<SuiteNode>& budget, Device device,
                  std::vector<SuiteVariant>& out) {
  SuiteTable table(node, "methods.");
  const SuiteNode method = table.need("method");
  const auto label = table.find("variant");
  struct Draft {
    std::string label;
    std::vector<Setting> settings;
  };
  std::vector<Draft> drafts = {{label ? label->text() : method.text(), {}}};
  for (const SuiteNode& setting : table.others()) {
    const bool swept = setting.node->is_array();
    const std::string key = setting.key.substr(std::string_view("methods.").size());
    std::vector<Draft> next;
    for (const Draft& draft : drafts)
      for (const SuiteNode& value : swept ? setting.elements() : std::vector{setting}) {
        next.push_back(draft);
        if (swept) next.back().label = fmt::format("{}/{}", draft.label, value.scalar());
        next.back().settings.push_back({key, value.scalar(), value.where()});
      }
    drafts = std::move(next);
    if (drafts.size() > kMaxVariants)
      throw InputError("{}: more than {} combinations", setting.where(), kMaxVariants);
  }
  for (Draft& draft : drafts) {
    const auto has = [&](const auto& s, std::string_view key) {
      return std::any_of(s.begin(), s.end(), [&](const Setting& x) { return x.key == key; });
    };
    try {
      const std::vector<std::string> known = make_method(method.text(), {}).settings;
      const auto takes = [&](const char* key) {
        return std::find(known.begin(), known.end(), key) != known.end() && !has(draft.settings, key);
      };
      if (budget && takes("budget")) draft.settings.push_back({"budget", budget->scalar(), budget->where()});
      if (device != Device::kCpu && takes("device"))
        draft.settings.push_back({"device", std::string(name_of(device)), "--device"});
      out.push_back({draft.label, make_method(method.text(), draft.settings)});
    } catch (const InputError& e) {
      if (std::string_view(e.what()).starts_with(method.file)) throw;
      throw InputError("{}: {}", method.where(), e.what());
    }
    for (std::size_t i = 0; i + 1 < out.size(); ++i)
      if (out[i].label == draft.label)
        throw InputError("{}: two rows are called {}; give this one another name with variant = \"...\"",
                         method.where(), printable(draft.label));
  }
}

}  // namespace

Suite parse_suite(std::string_view text, const std::string& where, Device device) {
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
  for (const SuiteNode& method : table.need("methods").elements())
    add_variants(method, budget, device, suite.variants);
  table.refuse_others();
  return suite;
}

Suite read_suite(const std::string& path, Device device) {
  const MappedFile file(path);
  return parse_suite(file.text(), path, device);
}

}  // namespace deeptail
