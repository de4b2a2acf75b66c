// deeptail dist list | show | sample | check
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "cli/commands.h"
#include "cli/dist_build.h"
#include "cli/dist_laws.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/tokens.h"
#include "core/screen_text.h"
#include "core/tell.h"
#include "deeptail/inputs.h"

namespace deeptail::cli {

namespace {

constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 62;

struct DistOptions {
  std::string name, model, count = "10";
  std::uint64_t seed = 1, first = 0;
  bool json = false, text = false;
};

double entropy_of(const Distribution& dist) {
  double sum = 0.0;
  for (std::size_t position = 0; position < dist.length(); ++position) sum += dist.table(position).entropy();
  return sum;
}

// Calls use(distribution, file) for each; a broken one does not hide the others.
void for_each_distribution(const std::vector<std::string>& files,
                           const std::function<void(const Distribution&, const std::string&)>& use) {
  for (const std::string& file : files) {
    try {
      use(load_distribution(file), file);
    } catch (const InputError& e) {
      tell(stderr, "deeptail: {}\n", screen_text(e.what(), kAnyWidth));
    }
  }
}

// What finds it again: its name, with its folder where that is not the usual one.
std::string asked_by(const Distribution& dist, const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().filename().string();
  return folder == "distributions" ? dist.name : fmt::format("{}/{}", folder, dist.name);
}

void list_distributions(bool json) {
  const auto files = deeptail::list_distributions();
  if (json) {
    OrderedJson rows = OrderedJson::array();
    for_each_distribution(files, [&](const Distribution& dist, const std::string& file) {
      rows.push_back({{"name", asked_by(dist, file)},
                      {"length", dist.length()},
                      {"entropy", entropy_of(dist)},
                      {"description", dist.description},
                      {"file", file}});
    });
    return print_json(rows);
  }
  if (files.empty()) {
    fmt::print(
        "no distributions found in ./distributions, beside the program, or in "
        "$DEEPTAIL_HOME/distributions\n");
    return;
  }
  fmt::print("{:10} {:>6} {:>7}  {}\n", "dist", "length", "nats", "what");
  std::vector<std::string> tables, laws;
  for (const std::string& file : files) (is_text_law(file) ? laws : tables).push_back(file);
  for (const std::string& file : laws) list_law(file);
  for_each_distribution(tables, [](const Distribution& dist, const std::string& file) {
    fmt::print("{:10} {:>6} {:>7.1f}  {}\n", screen_text(asked_by(dist, file)), dist.length(),
               entropy_of(dist), screen_text(dist.description));
  });
}

// [tables]: the positions where each is used, ascending.
std::vector<std::vector<std::size_t>> positions_by_table(const Distribution& dist) {
  std::vector<std::vector<std::size_t>> positions(dist.tables.size());
  for (std::size_t p = 0; p < dist.length(); ++p) positions[dist.positions[p]].push_back(p);
  return positions;
}

// "0", "1-32", "3, 6-8".
std::string ranges_text(const std::vector<std::size_t>& positions) {
  std::string text;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::size_t first = positions[i];
    while (i + 1 < positions.size() && positions[i + 1] == positions[i] + 1) ++i;
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", first,
                        positions[i] > first ? fmt::format("-{}", positions[i]) : "");
  }
  return text;
}

std::vector<std::size_t> most_likely(const TokenTable& table, std::size_t n) {
  std::vector<std::size_t> order(table.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return table.probability(a) > table.probability(b); });
  order.resize(std::min(n, order.size()));
  return order;
}

OrderedJson table_json(const TokenTable& table, const std::vector<std::size_t>& positions) {
  return {{"name", table.name()},
          {"size", table.size()},
          {"entropy_nats", table.entropy()},
          {"positions", positions}};
}

void show(const DistOptions& options) {
  if (is_text_law(options.name)) return show_law(options.name, options.model, options.json);
  const Distribution dist = load_distribution(options.name);
  const auto positions = positions_by_table(dist);
  if (options.json) {
    OrderedJson out = {{"name", dist.name},
                       {"description", dist.description},
                       {"length", dist.length()},
                       {"d_vocab", dist.d_vocab},
                       {"sha256", dist.sha256},
                       {"tokenizer_sha256", dist.tokenizer_sha256},
                       {"entropy_nats", entropy_of(dist)},
                       {"tables", OrderedJson::array()}};
    for (std::size_t t = 0; t < dist.tables.size(); ++t)
      out["tables"].push_back(table_json(dist.tables[t], positions[t]));
    print_json(out);
    return;
  }
  const auto tokenizer = find_tokenizer(dist.tokenizer_sha256);
  fmt::print("{}: {}\n", screen_text(dist.name), screen_text(dist.description, 200));
  fmt::print("length {}  d_vocab {}  entropy {:.1f} nats: 10^{:.1f} typical inputs\n", dist.length(),
             dist.d_vocab, entropy_of(dist), entropy_of(dist) / std::log(10.0));
  fmt::print("sha256 {}\ntokenizer {}\n", dist.sha256,
             dist.tokenizer_sha256.empty() ? "not stated" : dist.tokenizer_sha256);
  for (std::size_t t = 0; t < dist.tables.size(); ++t) {
    const TokenTable& table = dist.tables[t];
    fmt::print("\ntable {}: {} token{}, {:.2f} nats, positions {}\n", screen_text(table.name()), table.size(),
               table.size() == 1 ? "" : "s", table.entropy(), ranges_text(positions[t]));
    for (const std::size_t i : most_likely(table, 8))
      fmt::print("  {:>7} {:>10.4g}  {}\n", table.ids()[i], table.probability(i),
                 shown(tokenizer, table.ids()[i]));
  }
}

// The tokenizer of --model, or any that is found and has the ids of the distribution.
NamedTokenizer tokenizer_for_samples(const DistOptions& o, const Distribution& dist) {
  if (!o.model.empty()) {
    const std::string folder = find_model(o.model);
    NamedTokenizer tokenizer = require_tokenizer(o.model);
    check_fits(dist, read_config(folder), tokenizer.sha256);
    return tokenizer;
  }
  if (auto tokenizer = find_tokenizer(dist.tokenizer_sha256)) return std::move(*tokenizer);
  throw InputError("--text: no model at hand has the tokenizer of distribution {}; name one with --model",
                   screen_text(dist.name));
}

void print_samples(const DistOptions& options) {
  const std::uint64_t count = parse_count(options.count, "--count");
  if (options.first > kMostSamples - count)
    throw InputError("--first {}: expected the {} samples from it on to lie below number 2^62", options.first,
                     count);
  if (is_text_law(options.name))
    return print_law_samples({.name = options.name,
                              .model = options.model,
                              .seed = options.seed,
                              .first = options.first,
                              .count = count,
                              .json = options.json,
                              .text = options.text});
  const Distribution dist = load_distribution(options.name);
  std::optional<NamedTokenizer> tokenizer;
  if (options.text) tokenizer = tokenizer_for_samples(options, dist);
  std::vector<TokenId> tokens(dist.length());
  for (std::uint64_t i = 0; i < count; ++i) {
    sample(dist, options.seed, options.first + i, tokens);
    if (options.text && options.json)
      print_json({{"tokens", tokens}, {"text", tokenizer->tokenizer.decode(tokens)}});
    else if (options.text)
      fmt::print("{}\n", screen_text(tokenizer->tokenizer.decode(tokens), kAnyWidth));
    else
      fmt::print("{}{}{}\n", options.json ? "[" : "", fmt::join(tokens, options.json ? "," : " "),
                 options.json ? "]" : "");
  }
}

}  // namespace

void add_dist(CLI::App& app) {
  CLI::App* dist =
      app.add_subcommand("dist", "Input distributions and laws of prompts: list, show, sample, check, build");
  dist->require_subcommand(1);
  const auto options = std::make_shared<DistOptions>();
  CLI::App* list = dist->add_subcommand("list", "Distributions found by name");
  list->add_flag("--json", options->json, "Machine-readable output");
  list->callback([options] { list_distributions(options->json); });

  const auto with_name = [&](const char* command, const char* help) {
    CLI::App* sub = dist->add_subcommand(command, help);
    sub->add_option("NAME", options->name, "Name or file of a distribution")->required();
    sub->add_flag("--json", options->json, "Machine-readable output");
    return sub;
  };
  const auto with_model = [&](CLI::App* sub, const char* help) {
    sub->add_option("--model", options->model, help);
  };
  CLI::App* shown = with_name("show", "Tables, sizes, entropy, most likely tokens; or prompts of a law");
  with_model(shown, "Whose tokenizer; for laws of text");
  shown->callback([options] { show(*options); });
  CLI::App* sub =
      with_name("sample", "Draw inputs: one line of token ids each (with --json: one JSON array a line)");
  sub->add_option("--count", options->count, "How many, such as 10, 1e6 or 2^20")->capture_default_str();
  sub->add_option("--seed", options->seed, "Seed")->capture_default_str();
  sub->add_option("--first", options->first, "Number of the first sample")->capture_default_str();
  sub->add_flag("--text", options->text, "Show the text instead of ids (with --json: beside them)");
  with_model(sub, "Whose tokenizer; default with tables: any that fits; laws of text need it");
  sub->callback([options] { print_samples(*options); });
  CLI::App* check = dist->add_subcommand("check", "What is wrong with a file, or what it is");
  check->add_option("NAME", options->name, "Name or file of a distribution or law")->required();
  with_model(check, "Whose tokenizer and context; laws of text need it");
  check->callback([options] { check_law(options->name, options->model); });
  add_dist_build(*dist);
}

}  // namespace deeptail::cli
