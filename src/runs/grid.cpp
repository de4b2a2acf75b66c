#include "runs/grid.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "core/json.h"
#include "core/sha256.h"
#include "deeptail/estimators.h"
#include "deeptail/temperatures.h"
#include "truth/truth.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxItems = 1 << 24;

// Names as one text that no other names give. A `|` between them does, unless a name holds one: then each
// comes with its length, after more bars than the plain form has.
std::string joined(const std::vector<std::string>& names) {
  const auto has_bar = [](const std::string& name) { return name.find('|') != std::string::npos; };
  if (std::none_of(names.begin(), names.end(), has_bar)) return fmt::format("{}", fmt::join(names, "|"));
  std::string out(names.size(), '|');
  for (const std::string& name : names) out += fmt::format("{}:{}", name.size(), name);
  return out;
}

std::string filled_in(const std::string& pattern, const std::string& model, const std::string& dist) {
  std::string name;
  for (std::string_view rest = pattern; !rest.empty();) {
    const auto take = [&](std::string_view mark, std::string_view value) {
      if (!rest.starts_with(mark)) return false;
      name += value;
      rest.remove_prefix(mark.size());
      return true;
    };
    if (!take("{model}", model) && !take("{dist}", dist)) take(rest.substr(0, 1), rest.substr(0, 1));
  }
  return name;
}

// Nothing where the suite can do without.
std::optional<std::string> truth_of_suite(const SuiteTargets& targets, const std::string& model,
                                          const std::string& dist) {
  const std::string name = filled_in(targets.truth, model, dist);
  if (!targets.truth_needed) return find_truth(name);
  return truth_path(name, model, dist);
}

// What can be known of a model without loading it.
struct FoundModel {
  ModelConfig config;
  std::string tokenizer_sha256;
  std::vector<TokenId> tokens;  // that the suite names, sorted
};

void add_models(Grid& grid, std::vector<FoundModel>& found) {
  for (const std::string& name : grid.suite.models) {
    const std::string folder = find_model(name);
    const ModelConfig config = read_config(folder);
    const auto tokenizer = tokenizer_of(config, folder);
    for (const auto& other : grid.header.models)
      if (other.name == config.model_name)
        throw InputError("model {} and another are both called {}", name, other.name);
    grid.header.models.push_back({.name = config.model_name,
                                  .sha256 = model_sha256(folder),
                                  .n_layers = config.n_layers,
                                  .d_model = config.d_model,
                                  .d_vocab = config.d_vocab});
    found.push_back({config, tokenizer ? tokenizer->sha256 : "",
                     tokens_of(grid.suite.targets, config, tokenizer ? &*tokenizer : nullptr)});
  }
}

// Without any samples where it is not known.
Truth truth_of_pair(Grid& grid, const RunHeader::Model& model, const RunHeader::File& dist) {
  const auto path = truth_of_suite(grid.suite.targets, model.name, dist.name);
  if (!path) return {};
  const Truth truth = read_counts_of(
      {.model = model.name, .dist = dist.name, .model_sha256 = model.sha256, .dist_sha256 = dist.sha256},
      model.d_vocab, *path);
  grid.header.truths.push_back({model.name + "-" + dist.name, sha256_of_file(*path)});
  return truth;
}

void add_pairs(Grid& grid) {
  std::vector<FoundModel> models;
  add_models(grid, models);
  std::vector<Distribution> dists;
  for (const std::string& name : grid.suite.distributions) {
    dists.push_back(load_distribution(name));
    for (const auto& other : grid.header.distributions)
      if (other.name == dists.back().name)
        throw InputError("distribution {} and another are both called {}", name, other.name);
    grid.header.distributions.push_back({dists.back().name, dists.back().sha256});
  }
  for (std::size_t m = 0; m < models.size(); ++m)
    for (std::size_t d = 0; d < dists.size(); ++d) {
      const auto& model = grid.header.models[m];
      const auto& dist = grid.header.distributions[d];
      check_fits(dists[d], models[m].config, models[m].tokenizer_sha256);
      const Truth truth = truth_of_pair(grid, model, dist);
      grid.pairs.push_back({.model_path = grid.suite.models[m],
                            .dist_path = grid.suite.distributions[d],
                            .model = model.name,
                            .dist = dist.name,
                            .samples = truth.samples()});
      if (grid.suite.targets.tokens.empty())
        grid.pairs.back().targets = choose_targets(truth, grid.suite.targets);
      for (const TokenId token : models[m].tokens)
        grid.pairs.back().targets.push_back({token, truth.count(token)});
    }
}

// Another table gives other estimates.
void add_temperatures(Grid& grid) {
  const bool used = std::any_of(grid.suite.variants.begin(), grid.suite.variants.end(),
                                [](const auto& v) { return v.method.takes("temperature"); });
  const std::string path = shipped_temperatures_path();
  if (!used || path.empty()) return;
  grid.header.temperatures.push_back({"temperatures.json", sha256_of_file(path)});
}

void add_items(Grid& grid) {
  std::size_t n_targets = 0;
  for (const GridPair& pair : grid.pairs) n_targets += pair.targets.size();
  const std::size_t n_variants = grid.suite.variants.size(), replicas = grid.suite.replicas;
  if (n_targets == 0) throw InputError("suite {}: no target has a q within the band", grid.suite.name);
  if (replicas > kMaxItems / n_targets / n_variants)
    throw InputError("suite {}: more than {} items", grid.suite.name, kMaxItems);
  std::uint32_t turn = 0;
  for (std::uint32_t v = 0; v < n_variants; ++v)
    for (std::uint32_t p = 0; p < grid.pairs.size(); ++p) {
      const bool shared = grid.suite.variants[v].method.shares_draws;
      const std::uint32_t first = turn;
      for (std::uint32_t t = 0; t < grid.pairs[p].targets.size(); ++t)
        for (std::uint32_t r = 0; r < replicas; ++r)
          grid.items.push_back({.pair = p,
                                .target = t,
                                .variant = v,
                                .replica = r,
                                .turn = shared && t > 0 ? first + r : turn++});
    }
  for (GridItem& item : grid.items) item.id = item_id(grid.described(item));
  const auto place = [&](const GridItem& i) {
    return std::tuple(i.pair, i.replica, grid.suite.variants[i.variant].method.calibration, i.target,
                      i.variant);
  };
  std::sort(grid.items.begin(), grid.items.end(),
            [&](const GridItem& a, const GridItem& b) { return place(a) < place(b); });
}

}  // namespace

std::string item_id(const RunItem& item) {
  return sha256_hex(joined({item.model, item.dist, fmt::format("{}", fmt::join(item.target, ",")),
                            item.variant, std::to_string(item.replica)}))
      .substr(0, 16);
}

RunItem Grid::described(const GridItem& item) const {
  const GridPair& pair = pairs[item.pair];
  const SuiteVariant& variant = suite.variants[item.variant];
  return {.id = item.id,
          .model = pair.model,
          .dist = pair.dist,
          .method = variant.method.name,
          .variant = variant.label,
          .target = {pair.targets[item.target].token},
          .replica = item.replica,
          .truth_count = pair.targets[item.target].count,
          .truth_samples = pair.samples,
          .seed = seed(item),
          .calibration_seed = calibration_seed(item)};
}

std::string Grid::name_of(const GridItem& item) const {
  const RunItem named = described(item);
  return fmt::format("{} {} {} {}", named.variant, named.model, named.dist, fmt::join(named.target, ","));
}

std::uint64_t Grid::seed(const GridItem& item) const {
  const GridPair& pair = pairs[item.pair];
  if (shares_draws(item))
    return hashed_to_number(joined({"shared", std::to_string(suite.seed), pair.model, pair.dist,
                                    suite.variants[item.variant].label, std::to_string(item.replica)}));
  return hashed_to_number(fmt::format("seed|{}|{}", suite.seed, item.id));
}

std::uint64_t Grid::calibration_seed(const GridItem& item) const {
  const GridPair& pair = pairs[item.pair];
  return hashed_to_number(joined(
      {"calibration", std::to_string(suite.seed), pair.model, pair.dist, std::to_string(item.replica)}));
}

Grid build_grid(Suite suite) {
  Grid grid{.suite = std::move(suite)};
  RunHeader& h = grid.header;
  h.version = kVersion;
  h.suite_name = grid.suite.name;
  h.suite_sha256 = grid.suite.sha256;
  h.suite_text = grid.suite.text;
  h.profiles = grid.suite.profiles;
  for (const SuiteVariant& variant : grid.suite.variants)
    if (variant.method.device != Device::kCpu) h.device = name_of(variant.method.device);
  add_pairs(grid);
  add_temperatures(grid);
  add_items(grid);
  h.items = grid.items.size();
  return grid;
}

std::vector<std::size_t> items_of_shard(const Grid& grid, std::size_t i, std::size_t n,
                                        std::span<const std::string> only) {
  const auto& variants = grid.suite.variants;
  std::vector<bool> wanted(variants.size(), only.empty());
  for (const std::string& name : only) {
    bool known = false;
    for (std::size_t v = 0; v < variants.size(); ++v)
      if (variants[v].is_called(name)) wanted[v] = known = true;
    if (!known)
      throw InputError("method {}: the suite {} has none of this name", printable(name), grid.suite.name)
          .with_hint(Hint::kOnly);
  }
  std::vector<std::size_t> out;
  for (std::size_t k = 0; k < grid.items.size(); ++k)
    if (grid.items[k].turn % n == i - 1 && wanted[grid.items[k].variant]) out.push_back(k);
  return out;
}

}  // namespace deeptail
