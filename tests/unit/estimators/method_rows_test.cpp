// A setting is written once: from its row come the flag, the key, the help, the check and the place in
// results.
#include "deeptail/method_rows.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "deeptail/methods.h"
#include "deeptail/temperatures.h"
#include "unit/chain_law.h"
#include "unit/estimators/counting_model.h"

namespace deeptail {
namespace {

std::string mistake_of(const SettingRow& row, const std::string& value) {
  try {
    row.check(value, "suite.toml: line 3: key");
    return "";
  } catch (const InputError& e) {
    return e.what();
  }
}

TEST(MethodRows, EveryMethodHasAnOwnNameColourAndHelp) {
  std::set<std::string_view> names;
  std::set<int> colours;
  for (const MethodRow* row : method_rows()) {
    EXPECT_TRUE(names.insert(row->name).second) << row->name;
    EXPECT_TRUE(colours.insert(row->colour).second) << row->name;
    EXPECT_FALSE(row->help.empty()) << row->name;
    EXPECT_FALSE(row->settings.empty()) << row->name;
    EXPECT_EQ(find_method_row(row->name), row);
  }
  EXPECT_EQ(find_method_row("magic"), nullptr);
}

TEST(MethodRows, EverySettingHasAFlagAKeyAndHelp) {
  std::set<std::string_view> keys;
  for (const SettingRow* row : setting_rows()) {
    EXPECT_TRUE(keys.insert(row->key).second) << row->key << " is written twice";
    EXPECT_TRUE(row->flag().starts_with("--")) << row->key;
    EXPECT_EQ(row->flag().find('_'), std::string::npos) << row->key;
    for (const char c : row->key)
      EXPECT_TRUE(std::islower(static_cast<unsigned char>(c)) || c == '_') << row->key;
    EXPECT_FALSE(row->help.empty()) << row->key;
    EXPECT_EQ(row->kind == SettingKind::kChoice, !row->words.empty()) << row->key;
  }
  for (const MethodRow* method : method_rows())
    for (const SettingRow* row : method->settings) EXPECT_TRUE(keys.contains(row->key)) << row->key;
  EXPECT_TRUE(keys.contains("step_size"));
}

TEST(MethodRows, AWrongValueGivesASentence) {
  for (const SettingRow* row : setting_rows())
    for (const char* value :
         {"", "-1", "nan", "inf", "1e400", "many", "1 2", "0x10", "9223372036854775808"}) {
      if (row->kind == SettingKind::kNumber && std::string_view(value).starts_with("92")) continue;
      const std::string mistake = mistake_of(*row, value);
      EXPECT_TRUE(mistake.starts_with("suite.toml: line 3: key: expected ")) << row->key << " " << value;
      EXPECT_NE(mistake.find(fmt::format("found \"{}\"", value)), std::string::npos) << mistake;
    }
  EXPECT_EQ(mistake_of(*method_row("tokensplit").setting("forgotten"), "1"),
            "suite.toml: line 3: key: expected a number above 0 and below 1, found \"1\"");
  EXPECT_EQ(mistake_of(*method_row("tokensplit").setting("taper"), "1"), "");
  EXPECT_EQ(mistake_of(*method_row("mhis").setting("burn_in"), "0"), "");
  EXPECT_EQ(mistake_of(*method_row("mhis").setting("normaliser"), "mean"),
            "suite.toml: line 3: key: expected harmonic or bridge, found \"mean\"");
}

// Each by itself, as it was given; what the help calls the default is the default.
TEST(MethodRows, EveryMethodReadsEverySettingOfItsRow) {
  for (const MethodRow* method : method_rows())
    for (std::size_t i = 0; i < method->settings.size(); ++i) {
      const SettingRow& row = *method->settings[i];
      const std::string name(method->name), key(row.key);
      const std::string value = row.kind == SettingKind::kChoice ? std::string(row.words.back())
                                : key == "budget" ? "16384"  // all-tokens takes no less than 1e4
                                : row.kind == SettingKind::kCount ? "4096"
                                : row.high > 1.0                  ? "3.5"
                                                                  : "0.75";
      const auto read = [&](const std::string& text) {
        return make_method(name, {{key, text, row.flag()}}).values[i].second;
      };
      const SettingValue expected = row.kind == SettingKind::kChoice ? SettingValue(value)
                                    : row.kind == SettingKind::kCount
                                        ? SettingValue(std::uint64_t{std::stoull(value)})
                                        : SettingValue(std::stod(value));
      EXPECT_EQ(read(value), expected) << name << " " << key;
      if (!row.usual.empty()) {
        EXPECT_EQ(read(std::string(row.usual)), make_method(name, {}).values[i].second) << name << " " << key;
      }
    }
}

TEST(MethodRows, MistakesBeginWithWhereTheyWereMade) {
  const auto mistake = [](const char* name, const std::vector<Setting>& settings) -> std::string {
    try {
      make_method(name, settings, "x.toml: line 4: methods.method");
      return "";
    } catch (const InputError& e) {
      return e.what();
    }
  };
  EXPECT_TRUE(
      mistake("magic", {}).starts_with("x.toml: line 4: methods.method: method magic: expected one of"));
  EXPECT_TRUE(mistake("mc", {{"budget", "x", "x.toml: line 9: methods.budget"}})
                  .starts_with("x.toml: line 9: methods.budget: expected a whole number"));
  EXPECT_TRUE(mistake("tokensplit", {{"budget", "1", "x.toml: line 9: methods.budget"}})
                  .starts_with("x.toml: line 4: methods.method: budget 1: tokensplit needs"));
}

TEST(MethodRows, WhyNot) {
  const CountingModel toy(6, {0.55, 0.3, 0.1, 0.05}, 10);
  const Transformer& model = toy.model();
  const TokenTables tables(toy.dist());
  const ChainLaw chain(7, CountingModel::kVocab);
  const NextToken one(toy.target()), two(Target({1, 2}, model.head()));
  const CallbackEvent score("a\nscore", [](const EventInputs&, std::span<double>) {});
  const Activations cloud;
  const Method cuda = make_method("tokensplit", {{"device", "cuda", ""}});
  const auto why = [](const char* name, const Question& q) { return why_not(make_method(name, {}), q); };

  for (const char* name : {"mc", "tokensplit"})
    for (const Question& q : {Question(model, tables, two), Question(model, chain, one),
                              Question(model, chain, score), Question(model, tables, score)})
      EXPECT_EQ(why(name, q), "") << name;
  EXPECT_EQ(why("mc", {model.head(), cloud, one}),
            "mc runs the model on its inputs: activations alone are not enough");
  for (const char* name : {"itgis", "mhis"}) {
    EXPECT_EQ(why(name, {model, tables, two}), "");
    EXPECT_EQ(
        why(name, {model, chain, one}),
        fmt::format("{} needs inputs whose tokens are drawn independently of each other, which those of "
                    "chain are not",
                    name));
    EXPECT_EQ(why(name, {model, tables, score}),
              fmt::format("{} needs an event about the most likely next token, found \"a\\x0ascore\"", name));
  }
  for (const char* name : {"ga-amls", "qld", "gld"}) {
    EXPECT_EQ(why(name, {model.head(), cloud, two}), "");
    EXPECT_EQ(why(name, {model, chain, one}), "");
    EXPECT_NE(why(name, {model, tables, score}), "");
  }
  EXPECT_EQ(why("qld-arc", {model, tables, two}), "qld-arc takes one target token, found 2");
  EXPECT_EQ(why_not(cuda, {model, tables, two}), "tokensplit on cuda takes one target token, found 2");
  EXPECT_TRUE(why_not(cuda, {model, chain, one}).starts_with("tokensplit on cuda needs inputs whose tokens"));
  EXPECT_TRUE(why_not(cuda, {model, tables, score}).starts_with("tokensplit on cuda needs an event about"));
#ifndef DEEPTAIL_HAS_CUDA
  EXPECT_THROW(check_can_answer(cuda, {model, tables, one}), DeviceError);
#endif
  // Before any work, whoever asks.
  ThreadPool pool(1);
  EXPECT_THROW(run_method(make_method("itgis", {}), {model, chain, one}, 1, pool), InputError);
  EXPECT_THROW(run_method(make_method("gld", {}), {model, tables, one}, 1, pool),
               InputError);  // no activations
}

TEST(MethodRows, NeedsActivations) {
  for (const MethodRow* row : method_rows())
    EXPECT_EQ(make_method(std::string(row->name), {}).needs_activations(),
              row->setting("calibration") != nullptr)
        << row->name;
}

// It is read once, but not kept for ever.
TEST(Temperatures, AnotherTableIsSeen) {
  const auto home =
      std::filesystem::temp_directory_path() / fmt::format("deeptail-temperatures-{}", ::getpid());
  std::filesystem::create_directories(home / "suites");
  const std::string path = (home / "suites" / "temperatures.json").string();
  const auto write = [&](double temperature, std::chrono::seconds later) {
    std::ofstream(path) << to_json({{.cell = {"m", "d", "itgis", temperature}, .result = {.loss = 1.0}}});
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + later);
  };
  const char* before = std::getenv("DEEPTAIL_HOME");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("DEEPTAIL_HOME", home.c_str(), 1);
  write(2.0, std::chrono::seconds(0));
  EXPECT_EQ(shipped_temperature("itgis", "m", "d"), 2.0);
  EXPECT_EQ(shipped_temperature("mhis", "m", "d"), std::nullopt);
  write(3.0, std::chrono::seconds(5));
  EXPECT_EQ(shipped_temperature("itgis", "m", "d"), 3.0);
  before == nullptr ? ::unsetenv("DEEPTAIL_HOME") : ::setenv("DEEPTAIL_HOME", kept.c_str(), 1);
  std::filesystem::remove_all(home);
}

}  // namespace
}  // namespace deeptail
