// deeptail spb: everything needed to choose the parameters of the SPB loss.
#include <cmath>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "core/write_file.h"
#include "deeptail/loss.h"
#include "report/spb_experiments.h"

namespace deeptail::cli {

namespace {

// ---- spb alpha ----

struct AlphaOptions {
  double ratio = 0.0, m0 = 2.0;
  bool json = false;
};

void run_alpha(const AlphaOptions& options) {
  const double alpha = alpha_for_ratio(options.ratio, options.m0);
  const double ratio = asymmetry_ratio(alpha, options.m0);
  if (options.json) return print_json({{"alpha", json_number(alpha)}, {"ratio_at_m0", json_number(ratio)}});
  fmt::print(
      "alpha {:.15g}: underestimates by a factor {:g} or more cost at least {:.15g} times as much as "
      "overestimates\n",
      alpha, options.m0, ratio);
  fmt::print(
      "(without shift; with a positive epsilon choose alpha a little larger, see `deeptail spb epsilon "
      "--ratio`)\n");
}

void add_alpha(CLI::App& app) {
  auto options = std::make_shared<AlphaOptions>();
  CLI::App* command = app.add_subcommand("alpha", "The smallest alpha with a wanted FN/FP ratio");
  command->add_option("--ratio", options->ratio, "Wanted ratio of the loss of q/m0 to that of m0 q")
      ->required();
  command->add_option("--m0", options->m0, "Smallest error factor that matters")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_alpha(*options); });
}

// ---- spb epsilon ----

struct EpsilonOptions {
  EpsilonQuery query;
  std::optional<double> epsilon;
  bool json = false;
};

struct Guarantee {
  std::string_view rule;
  double epsilon, ratio, distortion;
};

// What the two rules, and an epsilon of the user's own, promise on the box.
std::vector<Guarantee> guarantees(const EpsilonOptions& options, const EpsilonBounds& bounds) {
  std::vector<Guarantee> out;
  const auto add = [&](std::string_view rule, double epsilon) {
    out.push_back({rule, epsilon, guaranteed_ratio(options.query, epsilon),
                   guaranteed_distortion(options.query, epsilon)});
  };
  if (bounds.corollary) add("half the corollary", 0.5 * *bounds.corollary);
  add("heuristic", bounds.heuristic);
  if (options.epsilon) add("given", *options.epsilon);
  return out;
}

OrderedJson to_json(const EpsilonOptions& options, const EpsilonBounds& bounds) {
  const EpsilonQuery& query = options.query;
  OrderedJson out{{"alpha", query.alpha},
                  {"eta", query.eta},
                  {"qmin", query.qmin},
                  {"mmax", query.mmax},
                  {"m0", query.m0},
                  {"ratio_at_m0", json_number(bounds.ratio_at_m0)},
                  {"theorem1", json_number(bounds.scale)},
                  {"theorem2", json_number(bounds.asymmetry)},
                  {"corollary", json_number(bounds.corollary)},
                  {"ratio", json_number(bounds.ratio)},
                  {"binds", name(bounds.binds)},
                  {"heuristic", bounds.heuristic},
                  {"guarantees", OrderedJson::array()}};
  for (const Guarantee& g : guarantees(options, bounds))
    out["guarantees"].push_back({{"rule", g.rule},
                                 {"epsilon", json_number(g.epsilon)},
                                 {"ratio_at_least", json_number(g.ratio)},
                                 {"distortion_at_most", json_number(g.distortion)}});
  return out;
}

void print_bound(std::string_view what, std::optional<double> bound, std::string_view why_not) {
  fmt::print("{:<52}{}\n", what, bound ? short_number(*bound) : fmt::format("none: {}", why_not));
}

void print_text(const EpsilonOptions& options, const EpsilonBounds& bounds) {
  const EpsilonQuery& query = options.query;
  fmt::print("alpha {:g}, truths of at least {:g}, errors by factors {:g} to {:g}\n\n", query.alpha,
             query.qmin, query.m0, query.mmax);
  constexpr std::string_view kNeedsAlpha = "needs alpha > 1.5";
  print_bound(fmt::format("theorem 1: scale distortion at most {:g}", query.eta), bounds.scale, "");
  print_bound("theorem 2: underestimates cost more", bounds.asymmetry, kNeedsAlpha);
  print_bound("corollary: both (stay strictly below)", bounds.corollary, kNeedsAlpha);
  if (query.ratio)
    print_bound(fmt::format("FN/FP ratio at least {:g}", *query.ratio), bounds.ratio,
                fmt::format("the ratio without shift is {}", short_number(bounds.ratio_at_m0)));
  fmt::print("{:<52}{}\n", "binds", name(bounds.binds));
  print_bound("heuristic: 0.01 qmin/mmax", bounds.heuristic, "");
  fmt::print("\n{:<20}{:>14}{:>18}{:>22}\n", "rule", "epsilon", "FN/FP at least", "distortion at most");
  for (const Guarantee& g : guarantees(options, bounds))
    fmt::print("{:<20}{:>14}{:>18}{:>22}\n", g.rule, short_number(g.epsilon), short_number(g.ratio),
               short_number(g.distortion));
}

void run_epsilon(const EpsilonOptions& options) {
  if (options.epsilon && (!(*options.epsilon >= 0.0) || !std::isfinite(*options.epsilon)))
    throw InputError("epsilon must be a finite number of at least 0, found {}", *options.epsilon);
  const EpsilonBounds bounds = epsilon_bounds(options.query);
  if (options.json)
    print_json(to_json(options, bounds));
  else
    print_text(options, bounds);
}

void add_epsilon(CLI::App& app) {
  auto options = std::make_shared<EpsilonOptions>();
  EpsilonQuery& query = options->query;
  CLI::App* command =
      app.add_subcommand("epsilon", "Every bound on the shift, which one binds, and the heuristic");
  command->add_option("--alpha", query.alpha, "Asymmetry of the loss")->required();
  command->add_option("--qmin", query.qmin, "Rarest truth to be scored")->required();
  command->add_option("--eta", query.eta, "Accepted scale distortion")->capture_default_str();
  command->add_option("--mmax", query.mmax, "Largest error factor covered")->capture_default_str();
  command->add_option("--m0", query.m0, "Smallest error factor with a promised asymmetry")
      ->capture_default_str();
  command->add_option("--ratio", query.ratio, "Wanted FN/FP ratio");
  command->add_option("--epsilon", options->epsilon, "Also say what this epsilon guarantees");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_epsilon(*options); });
}

// ---- spb table ----

struct TableOptions {
  double alpha = 2.0;
  std::vector<double> m;
  bool json = false;
};

void run_table(const TableOptions& options) {
  SpbParameters{.alpha = options.alpha}.validate();
  for (const double m : options.m)
    if (!(m > 1.0) || !std::isfinite(m)) throw InputError("m must be a finite factor above 1, found {}", m);
  OrderedJson rows = OrderedJson::array();
  if (!options.json)
    fmt::print("alpha {:g}\n{:>14}{:>16}{:>16}{:>16}\n", options.alpha, "m", "I_FP", "I_FN", "R");
  for (const double m : options.m) {
    const double fp = i_fp(options.alpha, m), fn = i_fn(options.alpha, m),
                 ratio = asymmetry_ratio(options.alpha, m);
    if (options.json)
      rows.push_back(
          {{"m", m}, {"i_fp", json_number(fp)}, {"i_fn", json_number(fn)}, {"ratio", json_number(ratio)}});
    else
      fmt::print("{:>14}{:>16}{:>16}{:>16}\n", short_number(m), short_number(fp), short_number(fn),
                 short_number(ratio));
  }
  if (options.json) print_json({{"alpha", options.alpha}, {"rows", rows}});
}

void add_table(CLI::App& app) {
  auto options = std::make_shared<TableOptions>();
  CLI::App* command =
      app.add_subcommand("table", "Loss of over- and underestimates by given factors, and their ratio");
  command->add_option("--alpha", options->alpha, "Asymmetry of the loss")->required();
  command->add_option("--m", options->m, "Error factors, separated by commas")->required()->delimiter(',');
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_table(*options); });
}

// ---- spb experiments ----

void run_experiments(const std::string& folder) {
  make_folder(folder);
  for (const Experiment& experiment : spb_experiments()) {
    const std::string path = (std::filesystem::path(folder) / experiment.name).string();
    write_file(path + ".csv", experiment.csv);
    write_file(path + ".svg", render_svg(experiment.panels));
    fmt::print("{}.csv, .svg: {}\n", path, experiment.what);
  }
}

void add_experiments(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("experiments", "Write data and plots of the paper's synthetic experiments");
  command->add_option("--out", *folder, "Folder to write to")->required();
  command->callback([folder] { run_experiments(*folder); });
}

}  // namespace

void add_spb(CLI::App& app) {
  CLI::App* command = app.add_subcommand("spb", "Choose the parameters of the SPB loss");
  command->require_subcommand(1);
  add_alpha(*command);
  add_epsilon(*command);
  add_table(*command);
  add_experiments(*command);
}

}  // namespace deeptail::cli
