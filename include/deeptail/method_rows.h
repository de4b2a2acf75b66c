// What methods there are, and what each can be told: the rows that the command line makes its flags and its
// help from, the suite its keys, and the report its order and its colours.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] deeptail {

enum class SettingKind {
  kCount,   // a whole number: 1000000, 1e6, 2^20
  kNumber,  // any number
  kChoice,  // one of some words
};

// A setting, written once however many methods take it.
struct SettingRow {
  std::string_view key;   // in suites and results; as a flag, --key-with-dashes
  std::string_view help;  // what it is, for one line of help
  SettingKind kind = SettingKind::kCount;
  std::uint64_t least = 1;  // of a count
  // Of a number: between these, or these too.
  double low = 0.0, high = std::numeric_limits<double>::max();
  bool with_ends = false;
  std::span<const std::string_view> words = {};  // of a choice
  std::string_view usual = {};  // the default; none where it differs or is found by the method itself
  bool about_work = false;      // says how much is done and where, rather than how

  std::string flag() const;      // --key-with-dashes
  std::string expected() const;  // "a number above 0 and below 1"
  // Throws InputError for a value that does not fit. where: how the sentence begins, "--prior".
  void check(std::string_view value, std::string_view where) const;
};

struct Method;
class SettingReader;

struct MethodRow {
  std::string_view name, help;  // help: what it does, in a few words
  std::span<const SettingRow* const> settings;
  int colour;  // on the report's page: the place in its palette; of one method alone
  Method (*make)(SettingReader&);

  const SettingRow* setting(std::string_view key) const;  // null: there is no such setting
};

// Best first where nothing else decides: the order of reports and of help.
std::span<const MethodRow* const> method_rows();
const MethodRow* find_method_row(std::string_view name);  // null: there is no such method
const MethodRow& method_row(std::string_view name);       // throws InputError with the nearest name
std::span<const SettingRow* const> setting_rows();        // of all methods, each once

}  // namespace deeptail
