// Counts of events on sampled continuations: against texts decoded one by one, and their files.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/random.h"
#include "core/write_file.h"
#include "deeptail/truth.h"
#include "sizes.h"
#include "truth/event_counter.h"
#include "truth/event_counts.h"
#include "unit/inputs/zoo.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

const LoadedModel& counted_model() {
  static const LoadedModel model = load_model(std::string(DEEPTAIL_SOURCE) + "/models/dt-1l");
  return model;
}
const TokenTables& hex_law() {
  static const TokenTables law(zoo("hex"));
  return law;
}

// A token at a time, every text alone and from its start.
std::vector<std::string> text_alone(const SamplingConfig& sampling, std::uint64_t seed,
                                    std::uint64_t sample) {
  ThreadPool pool(1);
  const Inputs prompt = sample_inputs(hex_law(), seed, sample, 1, pool);
  std::vector<TokenId> tokens(prompt.sequence(0).begin(), prompt.sequence(0).end());
  const std::size_t n_prompt = tokens.size(), d = counted_model().config().d_model,
                    v = counted_model().config().d_vocab;
  NextTokenLaw next(sampling, v);
  std::vector<float> resid(d), logit(v);
  for (std::size_t t = 0; t < sampling.max_tokens; ++t) {
    final_residuals(counted_model().transformer, {tokens, tokens.size()}, pool, {resid.data(), d});
    logits(counted_model().head(), 1, {resid.data(), d}, pool, {logit.data(), v});
    next.set(logit);
    const TokenId token = next.draw(uniform64({seed, Stream::kInputs}, sample,
                                              static_cast<std::uint32_t>(hex_law().facts().n_parts + t)));
    if (sampling.stops(token)) break;
    tokens.push_back(token);
  }
  std::vector<std::string> out;  // of each token
  for (std::size_t i = n_prompt; i < tokens.size(); ++i)
    out.push_back(counted_model().tokenizer->tokenizer.bytes_of(tokens[i]));
  return out;
}

class CountEvents : public ::testing::Test {
 protected:
  CountEvents() {
    std::string pattern = (fs::temp_directory_path() / "deeptail-events-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~CountEvents() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  static EventCounts subject(const std::string& events) {
    EventCounts out{.model = "dt-1l",
                    .law = "hex",
                    .model_sha256 = counted_model().sha256,
                    .law_sha256 = hex_law().facts().sha256,
                    .sampling = {.temperature = 0.9, .top_p = 0.95, .stop = {18}}};
    for (const std::string& event : parse_events(events, "events")) out.events.push_back({.event = event});
    return out;
  }
  EventCounts count(const std::string& name, std::uint64_t first, std::uint64_t samples,
                    std::size_t threads = 2, const Watch& watch = {}) const {
    ThreadPool pool(threads);
    count_events(
        counted_model(), hex_law(),
        {.subject = subject(kEvents), .seed = 3, .first = first, .samples = samples, .out = path(name)}, pool,
        watch);
    return fs::exists(path(name)) ? read_event_counts(path(name)) : EventCounts();
  }

  static constexpr const char* kEvents =
      R"({"contains":"a","within":5}
{"contains":"a","within":2}
{"matches":"[0-9]{3}","within":4}

{"starts_with":"f"}
{"matches":"^[a-f]+$","within":5}
{"judge":"while IFS= read -r l; do l=${l#*continuation}; echo ${#l}; done","within":3,"threshold":9})";
  std::string folder_;
};

TEST_F(CountEvents, AreThoseOfTextsDecodedAlone) {
  const std::uint64_t n = sized<std::uint64_t>(200, 20);
  const EventCounts found = count("all.json", 7, n);
  SamplingConfig sampling = subject(kEvents).sampling;
  sampling.max_tokens = 5;
  std::vector<std::uint64_t> expected(6);
  const auto three_digits = matches("[0-9]{3}", "r"), letters = matches("^[a-f]+$", "r");
  for (std::uint64_t i = 7; i < 7 + n; ++i) {
    const std::vector<std::string> alone = text_alone(sampling, 3, i);
    const auto text = [&](std::size_t within) {
      return fmt::format("{}", fmt::join(std::span(alone).first(std::min(within, alone.size())), ""));
    };
    expected[0] += text(5).find('a') != std::string::npos;
    expected[1] += text(2).find('a') != std::string::npos;
    expected[2] += three_digits.accepts(text(4));
    expected[3] += text(1).starts_with("f");
    expected[4] += letters.accepts(text(5));
    // After the word: ":" with quotes, the text, and the end of the object.
    expected[5] += text(3).size() + 5 >= 9;
  }
  for (std::size_t e = 0; e < expected.size(); ++e)
    EXPECT_EQ(found.events[e].count, expected[e]) << found.events[e].event;
  EXPECT_EQ(found.samples(), n);
  EXPECT_GT(expected[0], 0u);
  EXPECT_LT(expected[2], n);
}

TEST_F(CountEvents, AreTheSameForAnyThreadsAndParts) {
  const EventCounts whole = count("whole.json", 0, 90, 1);
  EXPECT_EQ(count("again.json", 0, 90, 7).events, whole.events);
  count("a.json", 0, 50);
  count("b.json", 50, 40);
  const std::vector<std::string> parts = {path("b.json"), path("a.json")},
                                 twice = {path("a.json"), path("a.json")};
  const EventCounts merged = merge_event_counts(parts);
  EXPECT_EQ(to_json(merged), to_json(whole));
  EXPECT_THROW(merge_event_counts(twice), InputError);
}

TEST_F(CountEvents, AStoppedCountGoesOnWhereItWas) {
  const EventCounts whole = count("whole.json", 0, 600);
  std::size_t asked = 0;
  const Watch once = [&](const Progress&) { return ++asked < 2; };
  EventCounts found;
  for (std::size_t run = 0; run < 400 && found.events.empty(); ++run) {
    asked = 0;
    found = count("parts.json", 0, 600, 2, once);
  }
  EXPECT_EQ(to_json(found), to_json(whole));
  EXPECT_FALSE(fs::exists(path("parts.json.partial")));
  EXPECT_THROW(count("parts.json", 0, 601), InputError);
  EXPECT_THROW(count("parts.json", 5, 20), InputError);
  write_file(path("other.json"), R"({"format":"deeptail-truth-1"})");
  EXPECT_THROW(count("other.json", 0, 20), InputError);
}

TEST_F(CountEvents, FilesThatDoNotAddUpAreRefused) {
  EventCounts counts =
      subject(R"([{"contains":"a","within":5},{"tokens_any":[3,2,3],"within":2},{"target":7}])");
  counts.ranges = {{"deeptail", 1, 0, 100}};
  counts.events[1].count = 30;
  const std::string good = to_json(counts);
  const EventCounts again = parse_event_counts(good, "f");
  EXPECT_EQ(to_json(again), good);
  EXPECT_EQ(again.events[1].event, R"({"tokens_any":[2,3],"within":2})");
  EXPECT_EQ(again.events[2].event, R"({"target":[7]})");
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    const std::size_t at = bad.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    bad.replace(at, from.size(), to);
    EXPECT_THROW(parse_event_counts(bad, "f"), InputError) << to;
  };
  refused("\"samples\":100", "\"samples\":101");
  refused("\"samples\":100", "\"samples\":0");
  refused("\"count\":30", "\"count\":101");
  refused("\"count\":30", "\"count\":-1");
  refused("\"top_p\":0.95", "\"top_p\":1.5");
  refused("\"temperature\":0.9", "\"temperature\":0");
  refused("[2,3]", "[]");
  refused("[7]", "[-7]");
  refused("\"target\":[7]", "\"tokens_any\":[3,2],\"within\":2");
  refused("event-counts-1", "event-counts-2");
}

TEST(EventCountsFile, ShippedFilesComeBackByteForByte) {
  const std::string root = DEEPTAIL_SOURCE;
  const std::string sha256 = model_sha256(root + "/models/dt-story");
  for (const char* name : {"dt-story-32", "dt-story-32-eos"}) {
    const InputFile file(fmt::format("{}/truth/{}.json", root, name));
    const EventCounts counts = parse_event_counts(file.text(), file.path());
    EXPECT_EQ(to_json(counts), file.text()) << name;
    EXPECT_EQ(counts.model_sha256, sha256);
    EXPECT_EQ(counts.samples(), 1u << 28);
    EXPECT_EQ(counts.events.size(), 3777u);
    EXPECT_EQ(counts.sampling.stop,
              name == std::string("dt-story-32") ? std::vector<TokenId>{} : std::vector<TokenId>{1});
  }
}

TEST(EventSpecs, WhatIsNoEventIsRefused) {
  for (const char* bad :
       {"", "[]", "{}", R"({"contains":"a"})", R"({"contains":"","within":3})",
        R"({"contains":"a","within":0})", R"({"contains":"a","matches":"b","within":3})",
        R"({"contains":"a","within":3,"threshold":1})", R"({"judge":"cat","within":3})",
        R"({"says":"a","within":3})", R"({"target":[]})", R"([{"target":1},{"target":[1]}])",
        R"({"contains":"a","within":3} x)", R"({"probe":"p.json"})"})
    EXPECT_THROW(parse_events(bad, "f"), InputError) << bad;
  EXPECT_EQ(parse_events(R"({"probe":"p.json","threshold":2})", "f")[0],
            R"({"probe":"p.json","threshold":2.0})");
  EXPECT_EQ(text_of(event_spec_of(R"({"contains":" a\n","within":3})")), R"(contains " a\x0a" within 3)");
}

}  // namespace
}  // namespace deeptail
