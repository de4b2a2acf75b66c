// deeptail forecast: the worst of n prompts.
#include <cmath>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/event_flags.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "core/json.h"
#include "core/progress.h"
#include "core/screen_text.h"
#include "deeptail/forecast.h"
#include "truth/event_counts.h"

namespace deeptail::cli {

namespace {

struct ForecastOptions {
  std::string model, queries, from = "1000", top, budget = "2e5";
  PromptOptions prompts;
  EventOptions event;
  std::uint64_t seed = 1;
  bool json = false, quiet = false;
};

std::vector<double> queries_of(const std::string& text) {
  std::vector<double> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t stop = std::min(text.find(',', at), text.size());
    const std::string piece = text.substr(at, stop - at);
    at = stop + 1;
    const std::string mistake = piece.empty() ? "empty" : number_mistake(piece);
    const double n = mistake.empty() ? std::strtod(piece.c_str(), nullptr) : 0.0;
    if (!(n >= 1.0 && n <= 1e300))
      throw InputError("--queries: expected numbers from 1 on, separated by commas, found {}",
                       quoted_text(piece));
    out.push_back(n);
  }
  return out;
}

ForecastRequest request_of(const ForecastOptions& o, const LoadedModel& model) {
  if (!o.event.starts_with)
    throw InputError("expected --starts-with, the text that answers are to start with");
  ForecastRequest out{.text = *o.event.starts_with,
                      .sampling = deployed_sampling(o.event, model),
                      .queries = queries_of(o.queries),
                      .prompts = parse_count(o.from, "--from"),
                      .seed = o.seed};
  if (!o.top.empty()) out.fit.top = parse_count(o.top, "--top");
  out.splitting.budget = static_cast<double>(parse_count(o.budget, "--budget"));
  out.fit.seed = out.splitting.seed = o.seed;
  out.validate();
  return out;
}

std::string short_p(double log_p) {
  if (std::isinf(log_p)) return "0";
  const double log10 = log_p / std::log(10.0);
  if (log10 > -300.0) return fmt::format("{:.3g}", std::exp(log_p));
  const double whole = std::floor(log10);
  return fmt::format("{:.3g}e{:.0f}", std::pow(10.0, log10 - whole), whole);
}

std::string interval_text(const WorstOf& w) {
  return fmt::format("[{}, {}]", short_p(w.log_worst_low), short_p(w.log_worst_high));
}

void print_text(const WorstForecast& f, const ForecastOptions& o, const ForecastRequest& request,
                const InputLaw& law) {
  fmt::print("How likely, after the worst of n prompts of {}, {} starts with {}\n",
             printable(law.facts().name), printable(o.model), quoted_text(request.text));
  fmt::print("{} prompt{}: mean {}, median {}, largest {}\n", f.prompts, f.prompts == 1 ? "" : "s",
             short_p(f.log_mean), short_p(f.log_median), short_p(f.log_largest));
  const bool pool = !f.pool.empty();
  fmt::print("\n  {:>8}  {:>10}  {:<24}  {:>10}  {}\n", "n", "forecast", "95% interval",
             pool ? "the pool" : "splitting", pool ? "" : "95% interval");
  for (std::size_t i = 0; i < request.queries.size(); ++i) {
    const WorstOf& found = pool ? f.pool[i] : f.splitting[i];
    const bool has = !f.forecast.empty();
    fmt::print("  {:>8}  {:>10}  {:<24}  {:>10}  {}\n", fmt::format("{:g}", request.queries[i]),
               has ? short_p(f.forecast[i].log_p) : "-", has ? interval_text(f.forecast[i]) : "-",
               short_p(found.log_p), pool ? "" : interval_text(found));
  }
  fmt::print("\n");
  if (!f.no_forecast.empty()) fmt::print("no forecast: {}\n", f.no_forecast);
  if (pool)
    fmt::print(
        "the pool: exact for these {} prompts, from n = {} on their largest; the forecast is for others like "
        "them\n",
        f.prompts, f.prompts);
  if (f.splitting_ended)
    fmt::print(
        "splitting found nothing above its last value: rarer prompts are no worse, or were not found\n");
  fmt::print("seed {}  {} chances  {:.1f} s\n", o.seed, f.chances, f.seconds);
}

OrderedJson json_of_worst(const WorstOf& w) {
  return {{"p", std::exp(w.log_p)},
          {"log_p", json_number(w.log_p)},
          {"p_interval", {std::exp(w.log_low), std::exp(w.log_high)}},
          {"interval", {std::exp(w.log_worst_low), std::exp(w.log_worst_high)}},
          {"log_interval", {json_number(w.log_worst_low), json_number(w.log_worst_high)}}};
}

void print_as_json(const WorstForecast& f, const ForecastRequest& request, const LoadedModel& model,
                   const InputLaw& law) {
  OrderedJson worst = OrderedJson::array();
  for (std::size_t i = 0; i < request.queries.size(); ++i) {
    OrderedJson one = {{"queries", request.queries[i]}};
    one["forecast"] = f.forecast.empty() ? OrderedJson() : json_of_worst(f.forecast[i]);
    one["splitting"] = f.splitting.empty() ? OrderedJson() : json_of_worst(f.splitting[i]);
    one["pool"] = f.pool.empty() ? OrderedJson()
                                 : OrderedJson{{"p", std::exp(f.pool[i].log_p)},
                                               {"log_p", json_number(f.pool[i].log_p)}};
    worst.push_back(one);
  }
  OrderedJson out = {{"event", {{"starts_with", request.text}}},
                     {"sampling", json_of(request.sampling)},
                     {"model", model.name},
                     {"model_sha256", model.sha256},
                     {"law", law.facts().name},
                     {"law_sha256", law.facts().sha256},
                     {"prompts", f.prompts},
                     {"top", f.top},
                     {"mean_log_p", json_number(f.log_mean)},
                     {"median_log_p", json_number(f.log_median)},
                     {"largest_log_p", json_number(f.log_largest)},
                     {"left_out", json_number(f.left_out)},
                     {"worst", worst},
                     {"splitting_ended", f.splitting_ended},
                     {"seed", request.seed},
                     {"chances", f.chances},
                     {"seconds", f.seconds}};
  if (!f.no_forecast.empty()) out["no_forecast"] = f.no_forecast;
  print_json(out);
}

void run_forecast(const ForecastOptions& o) {
  queries_of(o.queries);
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet), {.label = fmt::format("loading {}", o.model)});
  const LoadedModel model = load_model(o.model);
  const ForecastRequest request = request_of(o, model);
  const auto law = make_law(o.prompts, model);
  ThreadPool pool;
  catch_interrupts();
  meter.restart({.label = "forecast", .unit = "chances"});
  const WorstForecast found = forecast_prompts(model, *law, request, pool, shown_until_interrupted(meter));
  meter.clear();
  if (o.json)
    print_as_json(found, request, model, *law);
  else
    print_text(found, o, request, *law);
  if (interrupted())
    throw Stopped(kInterrupted, "interrupted; what is above uses the prompts seen until then");
}

}  // namespace

void add_forecast(CLI::App& app) {
  CLI::App* sub = app.add_subcommand(
      "forecast",
      "The worst of n prompts: how large the chance of a text becomes, forecast and by splitting");
  const auto o = std::make_shared<ForecastOptions>();
  sub->add_option("--model", o->model, "Folder or name of a model, or hf:ORG/NAME")->required();
  sub->add_option("--dist", o->prompts.dist, "Name or file of a law that makes prompts");
  add_prompt_flags(*sub, o->prompts);
  add_sampling_flags(*sub, o->event, true);
  sub->add_option("--starts-with", o->event.starts_with, "The text that answers are to start with")
      ->required();
  sub->add_option("--queries", o->queries, "Numbers of prompts, such as 1e4,1e6,1e9")->required();
  sub->add_option("--from", o->from, "Prompts that the forecast is made from, where a law makes them")
      ->capture_default_str();
  sub->add_option("--top", o->top, "Prompts that its tail is fitted to; default: a tenth, 10 to 100");
  sub->add_option("--budget", o->budget, "Chances that splitting computes, about")->capture_default_str();
  sub->add_option("--seed", o->seed, "Seed")->capture_default_str();
  sub->add_flag("--json", o->json, "Machine-readable output");
  sub->add_flag("--quiet", o->quiet, "No progress");
  sub->callback([o] { run_forecast(*o); });
}

}  // namespace deeptail::cli
