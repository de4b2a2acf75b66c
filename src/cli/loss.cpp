// deeptail loss: scores a table of truths and estimates.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "core/screen_text.h"
#include "deeptail/loss.h"

namespace deeptail::cli {

namespace {

struct LossOptions {
  std::string file, profile, versus, samples;
  std::optional<double> alpha, gamma, epsilon, qmin;
  EpsilonQuery rule;  // alpha and qmin are filled in from the pairs
  BootstrapConfig bootstrap;
  std::vector<std::string> by;
  bool calibrate = false, json = false;
};

// The parameters in force and where they came from.
struct Setting {
  std::string_view profile;
  SpbParameters spb;
  std::string_view epsilon_rule;  // given, corollary or heuristic
};

Setting choose_setting(const LossOptions& options, const Pairs& pairs) {
  const Profile& base = find_profile(options.profile.empty() ? "benchmarking" : options.profile);
  const bool custom = options.alpha || options.gamma;
  Setting out{custom ? "custom" : base.name,
              {.alpha = options.alpha.value_or(base.alpha),
               .gamma = options.gamma.value_or(base.gamma),
               .epsilon = 0.0},
              "given"};
  if (options.epsilon) {
    out.spb.epsilon = *options.epsilon;
  } else {
    EpsilonQuery query = options.rule;
    query.alpha = out.spb.alpha;
    query.qmin = options.qmin.value_or(*std::min_element(pairs.truth.begin(), pairs.truth.end()));
    const EpsilonChoice choice = choose_epsilon(query);
    out.spb.epsilon = choice.epsilon;
    out.epsilon_rule = choice.rule;
  }
  out.spb.validate();
  return out;
}

// 4294967296 or 2^32.
std::uint64_t parse_samples(const std::string& text) {
  std::uint64_t base = 0, exponent = 0;
  const char* const end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, base);
  const bool power = parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '^';
  if (power) parsed = std::from_chars(parsed.ptr + 1, end, exponent);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == end;
  if (whole && !power && base > 1) return base;
  if (whole && power && base == 2 && exponent >= 1 && exponent < 64) return std::uint64_t{1} << exponent;
  throw InputError("--samples must be a whole number above 1 such as 4294967296 or 2^32, found '{}'", text);
}

NoiseFloor floor_of(const LossOptions& options, const Pairs& pairs, const SpbParameters& spb) {
  const std::uint64_t samples = parse_samples(options.samples);
  std::vector<std::uint64_t> counts;  // [n]
  for (std::size_t i = 0; i < pairs.truth.size(); ++i) {
    const double count = std::round(pairs.truth[i] * static_cast<double>(samples));
    if (!(count >= 1.0 && count < static_cast<double>(samples)))
      throw InputError("{}: line {}: a truth of {} is no count out of {} samples", options.file,
                       pairs.line[i], pairs.truth[i], samples);
    counts.push_back(static_cast<std::uint64_t>(count));
  }
  return noise_floor(spb, counts, samples);
}

Pairs read_pairs(const std::string& file, std::span<const std::string> by = {}) {
  return parse_pairs(InputFile(file).text(), file, by);
}

std::vector<double> losses(const SpbParameters& spb, const Pairs& pairs) {
  std::vector<double> out(pairs.truth.size());
  spb_weighted(spb, pairs.truth, pairs.estimate, out);
  return out;
}

// The other file must speak about the same targets in the same order.
Pairs read_rival(const LossOptions& options, const Pairs& pairs) {
  Pairs rival = read_pairs(options.versus);
  if (rival.truth.size() != pairs.truth.size())
    throw InputError("{}: has {} rows but {} has {}: the rows must be the same targets in the same order",
                     options.versus, rival.truth.size(), options.file, pairs.truth.size());
  for (std::size_t i = 0; i < rival.truth.size(); ++i)
    if (rival.truth[i] != pairs.truth[i])
      throw InputError(
          "{}: line {}: the truth {} differs from {} in {} line {}: the rows must be the same targets in the "
          "same order",
          options.versus, rival.line[i], rival.truth[i], pairs.truth[i], options.file, pairs.line[i]);
  return rival;
}

// Rows with the same values in the columns of --by.
struct LossGroup {
  std::vector<std::string> names;
  std::vector<double> truth, estimate;
  std::size_t zeros = 0;
  double spb = 0.0;
  StandardLosses standard = {};
};

// In the order in which they first appear.
std::vector<LossGroup> groups_of(const Pairs& pairs, const SpbParameters& spb) {
  std::vector<LossGroup> groups;
  std::map<std::vector<std::string>, std::size_t> index;
  for (std::size_t i = 0; i < pairs.group.size(); ++i) {
    const auto [found, is_new] = index.try_emplace(pairs.group[i], groups.size());
    if (is_new) groups.push_back({.names = pairs.group[i], .truth = {}, .estimate = {}});
    LossGroup& group = groups[found->second];
    group.truth.push_back(pairs.truth[i]);
    group.estimate.push_back(pairs.estimate[i]);
    group.zeros += pairs.estimate[i] == 0.0 ? 1 : 0;
  }
  for (LossGroup& group : groups) {
    group.spb = spb_loss(spb, group.truth, group.estimate);
    group.standard = standard_losses(group.truth, group.estimate);
  }
  return groups;
}

struct LossReport {
  Setting setting;
  double spb;
  StandardLosses standard;
  std::size_t n, zeros;
  double smallest_truth, largest_truth;
  std::optional<Calibration> calibration;
  std::optional<NoiseFloor> floor;
  std::optional<double> rival_spb;
  std::optional<PairedBootstrap> duel;
  std::vector<LossGroup> groups;
};

LossReport evaluate(const LossOptions& options) {
  options.bootstrap.validate();
  if (!options.by.empty() && (options.calibrate || !options.samples.empty() || !options.versus.empty()))
    throw InputError("--by: goes with neither --calibrate, --samples nor --versus; give it alone");
  const Pairs pairs = read_pairs(options.file, options.by);
  const auto [smallest, largest] = std::minmax_element(pairs.truth.begin(), pairs.truth.end());
  const Setting setting = choose_setting(options, pairs);
  LossReport out{
      .setting = setting,
      .spb = spb_loss(setting.spb, pairs.truth, pairs.estimate),
      .standard = standard_losses(pairs.truth, pairs.estimate),
      .n = pairs.truth.size(),
      .zeros = static_cast<std::size_t>(std::count(pairs.estimate.begin(), pairs.estimate.end(), 0.0)),
      .smallest_truth = *smallest,
      .largest_truth = *largest,
      .calibration = {},
      .floor = {},
      .rival_spb = {},
      .duel = {},
      .groups = groups_of(pairs, setting.spb)};
  ThreadPool pool(options.calibrate || !options.versus.empty() ? 0 : 1);
  if (options.calibrate) out.calibration = calibrate(pairs.truth, pairs.estimate, pool);
  if (!options.samples.empty()) out.floor = floor_of(options, pairs, setting.spb);
  if (!options.versus.empty()) {
    const Pairs rival = read_rival(options, pairs);
    out.rival_spb = spb_loss(setting.spb, rival.truth, rival.estimate);
    out.duel =
        paired_bootstrap(losses(setting.spb, pairs), losses(setting.spb, rival), options.bootstrap, pool);
  }
  return out;
}

OrderedJson groups_json(const LossReport& r, const LossOptions& options) {
  OrderedJson rows = OrderedJson::array();
  for (const LossGroup& group : r.groups) {
    OrderedJson names = OrderedJson::object();
    for (std::size_t i = 0; i < options.by.size(); ++i) names[options.by[i]] = group.names[i];
    rows.push_back({{"group", names},
                    {"spb", json_number(group.spb)},
                    {"itakura_saito", json_number(group.standard.itakura_saito)},
                    {"log_squared", json_number(group.standard.log_squared)},
                    {"squared", json_number(group.standard.squared)},
                    {"n", group.truth.size()},
                    {"zeros", group.zeros}});
  }
  return rows;
}

OrderedJson to_json(const LossReport& r, const LossOptions& options) {
  OrderedJson out{{"spb", json_number(r.spb)},
                  {"itakura_saito", json_number(r.standard.itakura_saito)},
                  {"log_squared", json_number(r.standard.log_squared)},
                  {"squared", json_number(r.standard.squared)},
                  {"n", r.n},
                  {"zeros", r.zeros},
                  {"profile", r.setting.profile},
                  {"alpha", r.setting.spb.alpha},
                  {"gamma", r.setting.spb.gamma},
                  {"epsilon", r.setting.spb.epsilon},
                  {"epsilon_rule", r.setting.epsilon_rule}};
  if (r.calibration)
    out["calibration"] = {{"itakura_saito", json_number(r.calibration->loss_leave_one_out)},
                          {"itakura_saito_fitted", json_number(r.calibration->loss_fitted)},
                          {"a", r.calibration->a},
                          {"c", r.calibration->c},
                          {"b", r.calibration->b},
                          {"uses_truth", Calibration::uses_truth}};
  if (r.floor) out["noise_floor"] = {{"spb", json_number(r.floor->mean)}, {"sd", json_number(r.floor->sd)}};
  if (r.duel)
    out["versus"] = {{"file", options.versus},
                     {"spb", json_number(*r.rival_spb)},
                     {"difference", r.duel->difference},
                     {"ci95", {r.duel->ci95[0], r.duel->ci95[1]}},
                     {"first_beats_second", r.duel->a_beats_b},
                     {"resamples", options.bootstrap.resamples},
                     {"seed", options.bootstrap.seed}};
  if (!options.by.empty()) out["groups"] = groups_json(r, options);
  return out;
}

void print_line(std::string_view what, const std::string& value) { fmt::print("{:<28}{}\n", what, value); }

// One row per group; the first column is as wide as its longest name.
void print_groups(const LossReport& r, const LossOptions& options) {
  const auto name = [](const std::vector<std::string>& parts) {
    return screen_text(fmt::format("{}", fmt::join(parts, " ")), 40);
  };
  std::size_t width = display_width(name(options.by));
  for (const LossGroup& group : r.groups) width = std::max(width, display_width(name(group.names)));
  const auto padded = [&](const std::string& text) {
    return text + std::string(width - display_width(text), ' ');
  };
  fmt::print("\n{} {:>6} {:>6} {:>12} {:>14} {:>12} {:>12}\n", padded(name(options.by)), "pairs", "zeros",
             "SPB", "Itakura-Saito", "log squared", "squared");
  for (const LossGroup& group : r.groups)
    fmt::print("{} {:>6} {:>6} {:>12} {:>14} {:>12} {:>12}\n", padded(name(group.names)), group.truth.size(),
               group.zeros, short_number(group.spb), short_number(group.standard.itakura_saito),
               short_number(group.standard.log_squared), short_number(group.standard.squared));
}

void print_text(const LossReport& r, const LossOptions& options) {
  const SpbParameters& s = r.setting.spb;
  fmt::print("{}: {} pairs, truths {:.3g} to {:.3g}, {} zero estimate{}\n", screen_text(options.file), r.n,
             r.smallest_truth, r.largest_truth, r.zeros, r.zeros == 1 ? "" : "s");
  fmt::print("profile {}: alpha {:g}, gamma {:g}, epsilon {} ({})\n\n", r.setting.profile, s.alpha, s.gamma,
             short_number(s.epsilon), r.setting.epsilon_rule);
  print_line("SPB", short_number(r.spb));
  print_line("Itakura-Saito", short_number(r.standard.itakura_saito));
  print_line("squared, log space", short_number(r.standard.log_squared));
  print_line("squared", short_number(r.standard.squared));
  if (r.calibration) {
    print_line("Itakura-Saito, calibrated", short_number(r.calibration->loss_leave_one_out));
    fmt::print("  p -> {:.3g} p^{:.3g} + {:.3g}, leave-one-out; this uses the truth\n", r.calibration->a,
               r.calibration->c, r.calibration->b);
  }
  if (r.floor)
    print_line("SPB of exact answers",
               fmt::format("{:.4g} +- {:.2g} (noise of the truth alone)", r.floor->mean, r.floor->sd));
  if (r.duel) {
    print_line("SPB of " + options.versus, short_number(*r.rival_spb));
    fmt::print("  difference {:.4g}, 95% {:.4g} to {:.4g}; the first file wins in {:.2f}% of {} resamples\n",
               r.duel->difference, r.duel->ci95[0], r.duel->ci95[1], 100.0 * r.duel->a_beats_b,
               options.bootstrap.resamples);
  }
  if (!options.by.empty()) print_groups(r, options);
}

void run(const LossOptions& options) {
  const LossReport report = evaluate(options);
  if (options.json)
    print_json(to_json(report, options));
  else
    print_text(report, options);
}

}  // namespace

void add_loss(CLI::App& app) {
  auto options = std::make_shared<LossOptions>();
  CLI::App* command =
      app.add_subcommand("loss", "Score estimates against truths: SPB loss and the standard losses");
  command->add_option("pairs.csv", options->file, "CSV file with the columns truth,estimate")->required();
  command->add_option("--profile", options->profile,
                      "benchmarking, oversight, stress or audit (default: benchmarking)");
  command->add_option("--alpha", options->alpha, "Asymmetry: above 1.5 underestimates cost more");
  command->add_option("--gamma", options->gamma,
                      "Rarity premium: ten times rarer weighs 10^gamma times more");
  command->add_option("--epsilon", options->epsilon,
                      "Shift that keeps zero estimates finite (default: chosen, see docs)");
  command->add_option("--eta", options->rule.eta, "Scale distortion the chosen epsilon may cause")
      ->capture_default_str();
  command->add_option("--mmax", options->rule.mmax, "Largest error factor the chosen epsilon covers")
      ->capture_default_str();
  command->add_option("--m0", options->rule.m0, "Smallest error factor with a promised asymmetry")
      ->capture_default_str();
  command->add_option("--qmin", options->qmin,
                      "Rarest truth the chosen epsilon covers (default: the rarest in the file)");
  command->add_flag("--calibrate", options->calibrate,
                    "Also p -> a p^c + b fitted to Itakura-Saito; uses the truth");
  command->add_option("--samples", options->samples,
                      "Samples behind the truths (2^32, say): also the noise floor");
  command->add_option("--versus", options->versus,
                      "Second CSV file of the same targets: also a paired bootstrap");
  command->add_option("--resamples", options->bootstrap.resamples, "Bootstrap resamples")
      ->capture_default_str();
  command->add_option("--seed", options->bootstrap.seed, "Bootstrap seed")->capture_default_str();
  command
      ->add_option("--by", options->by, "Columns, separated by commas: also the losses of each group of rows")
      ->delimiter(',');
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run(*options); });
}

}  // namespace deeptail::cli
