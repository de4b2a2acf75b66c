// The list of methods. Their rows are beside them.
#include "deeptail/method_rows.h"

#include <algorithm>

#include "core/json.h"
#include "core/nearest.h"
#include "deeptail/continuation.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

constexpr const MethodRow* kMethodList[] = {
    &kTokensplitRow, &kAllTokensRow, &kAutoRow,   &kPayoffRow, &kStaticRow, &kTrajectoryRow, &kForecastRow,
    &kGaAmlsRow,     &kQldRow,       &kQldArcRow, &kGldRow,    &kItgisRow,  &kMhisRow,       &kMcRow};

}  // namespace

std::span<const MethodRow* const> method_rows() { return kMethodList; }

std::span<const SettingRow* const> setting_rows() {
  static const std::vector<const SettingRow*> all = [] {
    std::vector<const SettingRow*> out;
    for (const MethodRow* method : kMethodList)
      for (const SettingRow* setting : method->settings)
        if (std::find(out.begin(), out.end(), setting) == out.end()) out.push_back(setting);
    return out;
  }();
  return all;
}

const SettingRow* MethodRow::setting(std::string_view key) const {
  for (const SettingRow* row : settings)
    if (row->key == key) return row;
  return nullptr;
}

const MethodRow* find_method_row(std::string_view name) {
  for (const MethodRow* row : kMethodList)
    if (row->name == name) return row;
  return nullptr;
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const MethodRow* row : kMethodList) names.emplace_back(row->name);
  return names;
}

const MethodRow& method_row(std::string_view name) {
  if (const MethodRow* row = find_method_row(name)) return *row;
  throw InputError("method {}: expected one of {}{}", printable(name), fmt::join(method_names(), ", "),
                   did_you_mean(std::string(name), method_names()));
}

Method make_method(const std::string& name, const std::vector<Setting>& settings, std::string_view where) {
  // What a config says of several settings together begins with where the method was named.
  const auto named = [&](const auto& make) {
    try {
      return make();
    } catch (const InputError& e) {
      if (where.empty()) throw;
      throw InputError("{}: {}", where, e.what());
    }
  };
  const MethodRow* row = named([&] { return &method_row(name); });
  SettingReader reader(*row, settings);
  Method method = named([&] { return row->make(reader); });
  method.row = row;
  method.name = name;
  method.given = settings;
  method.values = reader.values();
  return method;
}

void check_can_answer(const Method& method, const Question& question) {
  const std::string name = method.device == Device::kCpu
                               ? method.name
                               : fmt::format("{} on {}", method.name, name_of(method.device));
  if (question.model == nullptr && !method.needs_activations())
    throw InputError("{} runs the model on its inputs: activations alone are not enough", name);
  if (method.needs_tables && question.tables() == nullptr)
    throw InputError(
        "{} needs inputs whose tokens are drawn independently of each other, which those of {} are not", name,
        printable(question.law->facts().name));
  const Target* target = question.next_token();
  if (method.needs_next_token && target == nullptr)
    throw InputError("{} needs an event about the most likely next token, found \"{}\"", name,
                     printable(question.event->text()));
  const ContinuationEvent* pattern = question.event->continuation();
  if (method.needs_pattern && pattern == nullptr)
    throw InputError("{} needs an event about a pattern in the model's continuation, found \"{}\"", name,
                     printable(question.event->text()));
  if (method.needs_pattern && pattern->sampling().greedy)
    throw InputError("{} needs a continuation that is sampled: a greedy one is always the same", name);
  if (method.one_token && target != nullptr && target->ids().size() != 1)
    throw InputError("{} takes one target token, found {}", name, target->ids().size());
  require_device(method.device);
}

std::string why_not(const Method& method, const Question& question) {
  try {
    check_can_answer(method, question);
    return "";
  } catch (const InputError& e) {
    return e.what();
  }
}

}  // namespace deeptail
