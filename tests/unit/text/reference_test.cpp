// Against answers made elsewhere: HuggingFace's library (tests/reference/make_tokenizer_fixtures.py),
// published ids.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "deeptail/core.h"
#include "small_tokenizer.h"

namespace deeptail {
namespace {

const std::string kFixtures = DEEPTAIL_TEST_DATA "/tokenizer/";
const std::string kReal = DEEPTAIL_SHARED_DATA "/real/tokenizers/";
const std::string kGpt2 = kReal + "gpt2/";
const std::string kNeoxDigits = kReal + "gpt-neox-digits-reconstructed/";

std::string show(const Ids& ids) { return ::testing::PrintToString(ids); }

// Every line {"text": ..., "ids": [...]} of a fixture.
void expect_fixture(const std::string& tokenizer_path, const std::string& fixture_path) {
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_path);
  const InputFile file(fixture_path);
  std::istringstream lines{std::string(file.text())};
  std::string line;
  std::size_t n_lines = 0, n_wrong = 0;
  while (std::getline(lines, line)) {
    ++n_lines;
    const Json entry = parse_json(line, fixture_path);
    const auto expected = entry.at("ids").get<Ids>();
    const Ids found = tokenizer.encode(entry.at("text").get_ref<const std::string&>());
    if (found != expected && ++n_wrong <= 5)
      ADD_FAILURE() << fixture_path << ":" << n_lines << ": " << entry.at("text") << "\n  expected "
                    << show(expected) << "\n  found    " << show(found);
  }
  EXPECT_EQ(n_wrong, 0u);
  EXPECT_EQ(n_lines, 2000u);
}

// Tokenizers of every kind, each NAME.json with NAME.jsonl (tests/reference/tokenizer_kinds.py): those of the
// tests, or of the folder that $DEEPTAIL_TOKENIZER_KINDS names.
std::string kinds_folder() {
  const char* named = std::getenv("DEEPTAIL_TOKENIZER_KINDS");
  return named != nullptr ? named : kFixtures + "kinds";
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kinds_folder()))
    if (entry.path().extension() == ".jsonl") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class TokenizerKind : public ::testing::TestWithParam<std::string> {};

TEST_P(TokenizerKind, HasTheIdsAndTextsOfHuggingFacesLibrary) {
  const std::string base = kinds_folder() + "/" + GetParam();
  const Tokenizer tokenizer = Tokenizer::load(base + ".json");
  const InputFile file(base + ".jsonl");
  std::istringstream lines{std::string(file.text())};
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(tokenizer.bos(), parse_json(line, base).at("bos").get<Ids>());
  std::size_t n_lines = 0, n_wrong = 0;
  while (std::getline(lines, line)) {
    ++n_lines;
    const Json entry = parse_json(line, base);
    const auto& text = entry.at("text").get_ref<const std::string&>();
    const auto& decoded = entry.value("decoded", text);
    const auto expected = entry.at("ids").get<Ids>();
    const Ids found = tokenizer.encode(text);
    if ((found != expected || tokenizer.decode(expected) != decoded) && ++n_wrong <= 5)
      ADD_FAILURE() << GetParam() << ": " << entry.at("text") << "\n  expected " << show(expected)
                    << "\n  found    " << show(found) << "\n  decoded  "
                    << ::testing::PrintToString(tokenizer.decode(expected));
  }
  EXPECT_EQ(n_wrong, 0u) << "of " << n_lines;
  EXPECT_GE(n_lines, 60u);
  RecordProperty("strings", static_cast<int>(n_lines));
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, TokenizerKind, ::testing::ValuesIn(kinds()), [](const auto& kind) {
  std::string name = kind.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST(HuggingFaceFixture, Digits) { expect_fixture(kFixtures + "digits.json", kFixtures + "digits.jsonl"); }
TEST(HuggingFaceFixture, Split) { expect_fixture(kFixtures + "split.json", kFixtures + "split.jsonl"); }
TEST(HuggingFaceFixture, Nfc) { expect_fixture(kFixtures + "nfc.json", kFixtures + "nfc.jsonl"); }

TEST(HuggingFaceFixture, Gpt2) {
  if (!std::filesystem::exists(kGpt2 + "tokenizer.json")) GTEST_SKIP() << "no GPT-2 vocabulary at " << kGpt2;
  expect_fixture(kGpt2 + "tokenizer.json", kFixtures + "gpt2.jsonl");
}

TEST(HuggingFaceFixture, GptNeoxDigits) {
  if (!std::filesystem::exists(kNeoxDigits + "tokenizer.json"))
    GTEST_SKIP() << "no vocabulary at " << kNeoxDigits;
  expect_fixture(kNeoxDigits + "tokenizer.json", kFixtures + "gpt-neox-digits.jsonl");
}

// Texts with a marker line after each; one line of ids for each.
TEST(Gpt2, PublishedStrings) {
  if (!std::filesystem::exists(kGpt2 + "strings.inp")) GTEST_SKIP() << "no strings.inp at " << kGpt2;
  const Tokenizer tokenizer = Tokenizer::load(kGpt2 + "tokenizer.json");
  const InputFile inputs(kGpt2 + "strings.inp"), outputs(kGpt2 + "strings.out");
  constexpr std::string_view kMarker = "\n__ggml_vocab_test__\n";
  std::string_view rest = inputs.text();
  std::istringstream lines{std::string(outputs.text())};
  std::string line;
  std::size_t n_texts = 0;
  for (std::size_t end; (end = rest.find(kMarker)) != std::string_view::npos;
       rest.remove_prefix(end + kMarker.size())) {
    const std::string_view text = rest.substr(0, end);
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream numbers(line);
    const Ids expected{std::istream_iterator<TokenId>(numbers), {}};
    EXPECT_EQ(tokenizer.encode(text), expected) << text;
    EXPECT_EQ(tokenizer.decode(expected), text);
    ++n_texts;
  }
  EXPECT_GE(n_texts, 40u);
}

TEST(Gpt2, WordsAndSpecialToken) {
  if (!std::filesystem::exists(kGpt2 + "tokenizer.json")) GTEST_SKIP() << "no GPT-2 vocabulary at " << kGpt2;
  const Tokenizer tokenizer = Tokenizer::load(kGpt2 + "tokenizer.json");
  EXPECT_EQ(tokenizer.vocab_size(), 50257u);
  EXPECT_EQ(tokenizer.encode("Hello world<|endoftext|>"), (Ids{15496, 995, 50256}));
  EXPECT_EQ(tokenizer.id_of(" the"), 262);
  for (TokenId id = 0; id < 50257; ++id) ASSERT_EQ(tokenizer.id_of(tokenizer.bytes_of(id)), id);
}

TEST(GptNeoxDigits, PublishedIds) {
  if (!std::filesystem::exists(kNeoxDigits + "tokenizer.json"))
    GTEST_SKIP() << "no vocabulary at " << kNeoxDigits;
  const Tokenizer tokenizer = Tokenizer::load(kNeoxDigits + "tokenizer.json");
  EXPECT_EQ(tokenizer.vocab_size(), 48262u);
  EXPECT_EQ(tokenizer.encode("Hello, world!"), (Ids{11765, 14, 1499, 3}));
  EXPECT_EQ(tokenizer.id_of("Charlie"), 43453);
  EXPECT_EQ(tokenizer.id_of(" Planet"), 28666);
  EXPECT_EQ(tokenizer.encode("biomolecules"), (Ids{31847}));
  EXPECT_EQ(tokenizer.encode("<|BOS|>1234"), (Ids{1, 19, 20, 21, 22}));
  // Runs of 24 to 2 spaces are entries of the vocabulary that stand for themselves; encoding gives the merged
  // ones.
  for (TokenId id = 48239; id < 48262; ++id)
    EXPECT_EQ(tokenizer.bytes_of(id), std::string(static_cast<std::size_t>(48263 - id), ' '));
  const Ids two_spaces = tokenizer.encode("  ");
  EXPECT_EQ(two_spaces.size(), 1u);
  EXPECT_LT(two_spaces[0], 48239);
  EXPECT_EQ(tokenizer.id_of("  "), two_spaces[0]);
}

}  // namespace
}  // namespace deeptail
