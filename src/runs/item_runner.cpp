#include "runs/item_runner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <limits>

#include "core/json.h"
#include "core/memory.h"
#include "core/stopwatch.h"
#include "runs/run_folder.h"

namespace deeptail {

namespace {

// Files may be replaced while a run goes on.
void check_unchanged(const RunHeader& header, const Provenance& loaded) {
  const auto check = [](const auto& files, const char* what, const std::string& name,
                        const std::string& sha256) {
    for (const auto& file : files)
      if (file.name == name && file.sha256 == sha256) return;
    throw InputError(
        "{} {}: has changed since the run began (SHA-256 {:.12} now); what is done is kept: put back what "
        "the run began with and run again, or use another folder",
        what, printable(name), sha256)
        .with_hint(Hint::kOut);
  };
  check(header.models, "model", loaded.model, loaded.model_sha256);
  check(header.distributions, "distribution", loaded.dist, loaded.dist_sha256);
}

// What a method that cannot treat this event has told us about it: nothing.
Estimate no_answer(const SuiteVariant& variant, const NextToken& event, std::uint64_t seed,
                   const std::string& why, const Provenance& provenance) {
  Estimate e{.method = variant.method.name, .target = event.next_token()->ids(), .event = event.text()};
  e.log_p = e.log_low = -std::numeric_limits<double>::infinity();
  e.log_high = 0.0;
  e.status = Status::kNotReachedUpperBound;
  e.guarantee = variant.method.needs_activations() ? Guarantee::kModelBased : Guarantee::kConsistent;
  e.seed = seed;
  e.warnings = {"no answer: " + why};
  e.provenance = provenance;
  e.provenance.device = name_of(variant.method.device);
  return e;
}

std::string text_of(const std::optional<NamedTokenizer>& tokenizer, TokenId token) {
  if (!tokenizer) return "";
  return tokenizer->tokenizer.decode_all(std::span(&token, 1));
}

// The rows again and again until there are n.
void repeat_rows(Activations& activations, std::size_t n) {
  const std::size_t d = activations.d_model, captured = activations.n;
  activations.values.resize(n * d);
  for (std::size_t i = captured; i < n; ++i)
    std::copy_n(activations.values.data() + (i - captured) * d, d, activations.values.data() + i * d);
  if (!activations.last_tokens.empty()) activations.last_tokens.resize(n);
  for (std::size_t i = captured; i < activations.last_tokens.size(); ++i)
    activations.last_tokens[i] = activations.last_tokens[i - captured];
  activations.n = n;
}

}  // namespace

bool ItemRunner::capture_for(std::uint64_t wanted, std::uint64_t seed, const Watch& watch) {
  const std::size_t fewest = 4 * model_->config().d_model;  // for moments
  const Stopwatch stopwatch;
  double first_seconds = 0.0;
  std::uint64_t first_batch = 0;
  bool given_up = false;
  activations_ =
      capture(model_->transformer, *law_, {.count = wanted, .seed = seed}, pool_, [&](const Progress& p) {
        if (first_batch == 0) first_batch = p.done, first_seconds = stopwatch.seconds();
        given_up = given_up || !goes_on(watch, {});
        return !given_up && (p.done < fewest || stopwatch.seconds() < most_capture_seconds_);
      });
  if (given_up) return false;
  capture_seconds_ = stopwatch.seconds();
  if (activations_.n == wanted) return true;
  // The first batch also made the tables; a second one tells the speed better.
  const auto n = static_cast<double>(activations_.n), batch = static_cast<double>(first_batch);
  const double each = n > batch ? (capture_seconds_ - first_seconds) / (n - batch) : first_seconds / batch;
  capture_seconds_ += each * (static_cast<double>(wanted) - n);
  repeat_rows(activations_, static_cast<std::size_t>(wanted));
  return true;
}

bool ItemRunner::prepare(const GridItem& item, const Watch& watch) {
  const GridPair& pair = grid_.pairs[item.pair];
  if (pair_ != item.pair) {
    pair_.reset();
    captured_ = 0;
    if (model_path_ != pair.model_path) {  // pairs of one model follow each other
      model_path_.clear();
      model_.reset();  // before the next one is there
      model_.emplace(load_model(pair.model_path));
      model_path_ = pair.model_path;
    }
    law_ = load_law(pair.dist_path, *model_);
    check_unchanged(grid_.header, provenance_of(*model_, *law_));
    pair_ = item.pair;
  }
  const Method& method = grid_.suite.variants[item.variant].method;
  const std::uint64_t wanted = method.calibration;
  const std::uint64_t seed = grid_.calibration_seed(item);
  refused_.clear();
  if (!method.needs_activations() || (captured_ == wanted && captured_seed_ == seed)) return true;
  captured_ = 0;
  activations_ = {};  // before the next ones are there
  const std::size_t d = model_->config().d_model;
  try {
    check_memory(fmt::format("{} on {} activations", method.name, wanted),
                 2.0 * capture_bytes(wanted, d) + (method.bytes ? method.bytes(wanted, d) : 0.0),
                 "take fewer activations or particles");
  } catch (const InputError& e) {
    refused_ = e.what();  // the other items of the run may fit
    capture_seconds_ = 0.0;
    return true;
  }
  if (!capture_for(wanted, seed, watch)) return false;
  captured_ = wanted;
  captured_seed_ = seed;
  return true;
}

Question ItemRunner::question(const GridItem& item, const Event& event) const {
  const GridPair& pair = grid_.pairs[item.pair];
  Question question(*model_, *law_, event);
  if (const std::uint64_t count = pair.targets[item.target].count; count > 0)
    question.likely_log_p = std::log(static_cast<double>(count) / static_cast<double>(pair.samples));
  if (grid_.suite.variants[item.variant].method.needs_activations()) {
    question.activations = &activations_;
    question.capture_cost = capture_cost(model_->config(), *law_, captured_, capture_seconds_);
  }
  return question;
}

Estimate ItemRunner::estimate(const GridItem& item, const Watch& watch) {
  const SuiteVariant& variant = grid_.suite.variants[item.variant];
  const TokenId token = grid_.pairs[item.pair].targets[item.target].token;
  const std::uint64_t seed = grid_.seed(item);
  const NextToken event(Target({token}, model_->head()));
  const Question asked = question(item, event);
  try {
    if (!refused_.empty()) throw InputError("{}", refused_);
    if (variant.method.needs_activations())
      check_activations(
          activations_, model_->config().d_model,
          fmt::format("activations of {} on {}", asked.provenance.model, asked.provenance.dist));
    return run_method(variant.method, asked, seed, pool_, watch);
  } catch (const DeviceError&) {
    throw;  // the other items would fail, too
  } catch (const InputError& e) {
    // One event that a method cannot treat must not keep the run from all others.
    return no_answer(variant, event, seed, e.what(), asked.provenance);
  }
}

std::string ItemRunner::line_of(const GridItem& item, Estimate e, double seconds) const {
  RunItem described = grid_.described(item);
  if (std::isnan(e.log_p) || std::isnan(e.log_low) || std::isnan(e.log_high))
    throw std::logic_error(fmt::format("{} gave no number for token {} of {} on {}", described.variant,
                                       described.target[0], described.model, described.dist));
  decode_tokens(e, model_->tokenizer);
  described.target_text = text_of(model_->tokenizer, described.target[0]);
  described.seconds = seconds;
  return data_line(described, to_json(e));
}

std::optional<std::string> ItemRunner::run(const GridItem& item, const Watch& watch) {
  if (!prepare(item, watch)) return std::nullopt;
  bool given_up = false;
  const Stopwatch stopwatch;
  Estimate e = estimate(item, [&](Progress p) {
    p.share = std::clamp(p.share, 0.0, 1.0);
    return !(given_up = given_up || !goes_on(watch, p));
  });
  last_seconds_ = stopwatch.seconds();
  if (given_up) return std::nullopt;
  return line_of(item, std::move(e), last_seconds_);
}

// These or, where draws are shared, all targets of theirs.
std::vector<const GridItem*> ItemRunner::asked_with(std::span<const GridItem* const> items) const {
  const GridItem& first = *items.front();
  if (!grid_.shares_draws(first)) return {items.begin(), items.end()};
  std::vector<const GridItem*> out;
  for (const GridItem& item : grid_.items)
    if (item.pair == first.pair && item.variant == first.variant && item.replica == first.replica)
      out.push_back(&item);
  return out;
}

bool ItemRunner::run_many(std::span<const GridItem* const> items,
                          const std::function<void(const GridItem&, const std::string&)>& on_line,
                          const Watch& watch) {
  if (!prepare(*items.front(), watch)) return false;
  const SuiteVariant& variant = grid_.suite.variants[items.front()->variant];
  std::deque<NextToken> events;  // that questions refer to
  std::vector<MethodTask> tasks;
  const std::vector<const GridItem*> asked_items = asked_with(items);
  for (const GridItem* item : asked_items) {
    const TokenId token = grid_.pairs[item->pair].targets[item->target].token;
    events.emplace_back(Target({token}, model_->head()));
    tasks.push_back({question(*item, events.back()), grid_.seed(*item)});
  }
  std::atomic<bool> given_up = false;
  const auto tell = [&](std::size_t i, Estimate e) {
    if (given_up) return;  // it may have been cut short
    const GridItem& item = *asked_items[i];
    if (std::find(items.begin(), items.end(), &item) == items.end()) return;  // it is done
    const double seconds = e.cost.seconds;
    on_line(item, line_of(item, std::move(e), seconds));
  };
  const auto refuse = [&](std::size_t i, const std::string& why) {
    tell(i, no_answer(variant, events[i], tasks[i].seed, why, tasks[i].question.provenance));
  };
  const Watch asked = [&](const Progress& p) { return !(given_up = given_up || !goes_on(watch, p)); };
  run_method_many(variant.method, tasks, {.on_estimate = tell, .on_refusal = refuse}, pool_, asked);
  return !given_up;
}

}  // namespace deeptail
