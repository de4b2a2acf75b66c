// Megabytes a second of Tokenizer::encode and decode on one core, with GPT-2's vocabulary.
// DEEPTAIL_BENCH_TOKENIZER names another tokenizer.json, DEEPTAIL_BENCH_TEXT a text file to encode.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "deeptail/core.h"
#include "deeptail/text.h"

#ifndef DEEPTAIL_SHARED_DATA
#define DEEPTAIL_SHARED_DATA "../shared"
#endif

namespace {

using namespace deeptail;

std::string from_environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// Prose and code in the proportions of a README, when no file is given.
std::string made_up_text() {
  const std::string paragraph =
      "How likely is it that this language model says that? Sampling sees nothing below one in a million, so "
      "the\n"
      "estimate is built from levels: each keeps the inputs that come closest, and multiplies 0.1 by 0.1 "
      "until the\n"
      "event (it isn't impossible, it's 3e-11) happens.\n\n"
      "    for (std::size_t i = 0; i < n_particles; ++i) {\n        log_p += "
      "std::log(survive_fraction[i]);\n    }\n\n";
  std::string text;
  while (text.size() < 5'000'000) text += paragraph;
  return text;
}

std::string bench_text() {
  const std::string path = from_environment("DEEPTAIL_BENCH_TEXT", "");
  return path.empty() ? made_up_text() : std::string(InputFile(path).text());
}

std::string bench_tokenizer() {
  return from_environment("DEEPTAIL_BENCH_TOKENIZER",
                          std::string(DEEPTAIL_SHARED_DATA) + "/real/tokenizers/gpt2/tokenizer.json");
}

void set_bytes(benchmark::State& state, std::size_t n_bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(n_bytes));
}

template <class Body>
void with_tokenizer(benchmark::State& state, const Body& body) {
  if (!std::filesystem::exists(bench_tokenizer())) {
    state.SkipWithError("no tokenizer.json; set DEEPTAIL_BENCH_TOKENIZER");
    return;
  }
  body(Tokenizer::load(bench_tokenizer()));
}

void encode(benchmark::State& state) {
  with_tokenizer(state, [&](const Tokenizer& tokenizer) {
    const std::string text = bench_text();
    if (tokenizer.decode(tokenizer.encode(text)) != text)
      return state.SkipWithError("decode does not invert encode");
    for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(text));
    set_bytes(state, text.size());
  });
}
BENCHMARK(encode)->Unit(benchmark::kMillisecond);

void encode_short_texts(benchmark::State& state) {
  with_tokenizer(state, [&](const Tokenizer& tokenizer) {
    const std::string text = "The quick brown fox jumps over the lazy dog.";
    if (tokenizer.decode(tokenizer.encode(text)) != text)
      return state.SkipWithError("decode does not invert encode");
    for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(text));
    set_bytes(state, text.size());
  });
}
BENCHMARK(encode_short_texts);

// One pre-token of `range` bytes: time must grow about as n log n.
void encode_one_long_word(benchmark::State& state) {
  with_tokenizer(state, [&](const Tokenizer& tokenizer) {
    const std::string text(static_cast<std::size_t>(state.range(0)), 'a');
    if (tokenizer.decode(tokenizer.encode(text)) != text)
      return state.SkipWithError("decode does not invert encode");
    for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(text));
    set_bytes(state, text.size());
  });
}
BENCHMARK(encode_one_long_word)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond);

void decode(benchmark::State& state) {
  with_tokenizer(state, [&](const Tokenizer& tokenizer) {
    const std::string text = bench_text();
    const auto ids = tokenizer.encode(text);
    if (tokenizer.decode(ids) != text) return state.SkipWithError("decode does not invert encode");
    for (auto _ : state) benchmark::DoNotOptimize(tokenizer.decode(ids));
    set_bytes(state, text.size());
  });
}
BENCHMARK(decode)->Unit(benchmark::kMillisecond);

void load(benchmark::State& state) {
  with_tokenizer(state, [&](const Tokenizer&) {
    for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::load(bench_tokenizer()));
  });
}
BENCHMARK(load)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
