#include "events/judge.h"

#include <charconv>
#include <cmath>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/json.h"
#include "core/line_process.h"
#include "core/sha256.h"

namespace deeptail {

namespace {

constexpr std::size_t kMostRemembered = std::size_t{1} << 20, kKeyDigits = 32;

// Special tokens have no text.
std::string question_line(const TokenTexts& texts, const SampledText& text) {
  return json_text(OrderedJson{{"prompt", texts.continuation({}, text.prompt)},
                               {"continuation", texts.continuation(text.prompt, text.continuation)}});
}

}  // namespace

struct Judge::State {
  std::mutex mutex;  // one question at a time
  std::optional<LineProcess> process = {};
  std::unordered_map<std::string, double> numbers = {};  // by the hash of the line
};

void JudgeConfig::validate() const {
  if (command.empty()) throw InputError("the judge's command is empty");
  if (command.find('\0') != std::string::npos) throw InputError("the judge's command holds a zero byte");
  if (!std::isfinite(threshold)) throw InputError("threshold {}: expected a finite number", threshold);
  if (!(timeout > 0.0)) throw InputError("timeout {}: expected seconds above 0", timeout);
}

double parse_judgement(std::string_view line, std::string_view where) {
  std::string_view text = line;
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double number = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range && stop == text.data() + text.size() &&
      text.find("e-") != std::string_view::npos)
    return 0.0;
  if (error != std::errc() || stop != text.data() + text.size() || !std::isfinite(number))
    throw InputError("{}: wrote \"{}\"; expected one finite number a line", where, printable(line, 40));
  return number;
}

Judge::Judge(JudgeConfig config, std::shared_ptr<const TokenTexts> texts)
    : config_(std::move(config)), texts_(std::move(texts)), state_(std::make_unique<State>()) {
  config_.validate();
}
Judge::~Judge() = default;

std::string Judge::text() const {
  return fmt::format("is judged at least {:g} by `{}`", config_.threshold, printable(config_.command));
}

void Judge::scores(std::span<const SampledText> texts, std::span<double> out, ThreadPool& pool) const {
  const std::size_t n = texts.size();
  std::vector<std::string> lines(n), keys(n);
  constexpr std::size_t kBlock = 64;
  pool.for_each_block((n + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
    for (std::size_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
      lines[i] = question_line(*texts_, texts[i]);
      keys[i] = sha256_hex(lines[i]).substr(0, kKeyDigits);
    }
  });
  const std::scoped_lock lock(state_->mutex);
  auto& known = state_->numbers;
  if (known.size() + n > kMostRemembered) known.clear();
  std::vector<std::string> asked;
  std::unordered_map<std::string, std::size_t> place;  // among those asked
  for (std::size_t i = 0; i < n; ++i)
    if (!known.contains(keys[i]) && place.try_emplace(keys[i], asked.size()).second)
      asked.push_back(std::move(lines[i]));
  if (!asked.empty()) {
    if (!state_->process) state_->process.emplace(config_.command, config_.timeout);
    const std::vector<std::string> answers = state_->process->ask(asked);
    std::vector<double> numbers;
    for (const std::string& answer : answers)
      numbers.push_back(parse_judgement(answer, printable(config_.command)));
    for (const auto& [key, k] : place) known.emplace(key, numbers[k]);
  }
  for (std::size_t i = 0; i < n; ++i) out[i] = known.at(keys[i]) - config_.threshold;
}

}  // namespace deeptail
