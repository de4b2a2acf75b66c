// Flags of cuda_tokensplit_check, and which targets it takes.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/data_places.h"
#include "deeptail/estimators.h"
#include "runs/grid.h"

namespace deeptail {

struct Settings {
  std::map<std::string, std::string> given = {{"--models", "dt-1l,dt-2l,dt-4l"},
                                              {"--dists", "hex,camel,colon,if,caps,english,spanish,icl"},
                                              {"--inputs", "4096"},
                                              {"--particles", "2048"},
                                              {"--steps", "48"},
                                              {"--targets", "0"},
                                              {"--cpu", "0"},
                                              {"--accuracy", "0"},
                                              {"--band", "1e-7,1e-5"},
                                              {"--csv", ""},
                                              {"--budget", "0"},
                                              {"--seed", "1"},
                                              {"--at-once", "256"},
                                              {"--tilt", "auto"},
                                              {"--least-count", "0"},
                                              {"--part", ""},
                                              {"--tokens", ""},
                                              {"--seeds", "1"},
                                              {"--look", "1024"}};
  // Others than these: their flags and values.
  Settings(int argc, char** argv, const std::map<std::string, std::string>& others = {}) {
    for (const auto& [flag, value] : others) given[flag] = value;
    for (int i = 1; i < argc; i += 2) {
      if (!given.contains(argv[i]) || i + 1 >= argc)
        throw InputError("{}: unknown, or without value", argv[i]);
      given[argv[i]] = argv[i + 1];
    }
  }
  std::vector<std::string> list(const char* flag) const {
    std::vector<std::string> parts(1);
    for (const char c : given.at(flag))
      if (c == ',')
        parts.emplace_back();
      else
        parts.back() += c;
    return parts;
  }
  double number(const char* flag) const { return std::atof(given.at(flag).c_str()); }
  std::size_t count(const char* flag) const { return static_cast<std::size_t>(number(flag)); }
  bool default_budget() const { return number("--budget") == 0.0; }
  TokensplitConfig config() const {
    TokensplitConfig config{.budget = number("--budget"),
                            .seed = static_cast<std::uint64_t>(number("--seed"))};
    config.tilt = value_named<Tilting>(given.at("--tilt")).value();
    return config;
  }
};

struct Seconds {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double spent() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

// What the checks are about.
struct Asked {
  const LoadedModel& model;
  Distribution dist;
};

// --part K,N: of all targets of the band with --least-count or more, those whose id, scrambled, is K modulo N: a sample by
// chance, the same in every run.
inline std::vector<GridTarget> part_of_truth(const Settings& s, const Truth& truth) {
  const auto part = s.list("--part"), band = s.list("--band");
  const auto k = static_cast<std::uint64_t>(std::atoi(part.at(0).c_str())),
             n = static_cast<std::uint64_t>(std::atoi(part.at(1).c_str()));
  std::vector<GridTarget> all = choose_targets(truth, {.q_low = std::atof(band.at(0).c_str()),
                                                       .q_high = std::atof(band.at(1).c_str()),
                                                       .count = std::size_t{1} << 20});
  std::erase_if(all, [&](const GridTarget& t) {
    return static_cast<double>(t.count) < s.number("--least-count") ||
           derived_seed(21, static_cast<std::uint64_t>(t.token)) % n != k;
  });
  return all;
}

inline std::vector<GridTarget> targets_of_truth(const Settings& s, const Asked& asked, std::size_t n,
                                                std::uint64_t& samples) {
  const std::string name = fmt::format("{}-{}.json", asked.model.name, asked.dist.name);
  for (const auto& place : data_places("truth")) {
    if (!std::filesystem::exists(place / name)) continue;
    const Truth truth = read_truth((place / name).string());
    samples = truth.samples();
    const auto band = s.list("--band");
    if (!s.given.at("--part").empty()) return part_of_truth(s, truth);
    if (!s.given.at("--tokens").empty()) {
      std::vector<GridTarget> asked_for;
      for (const std::string& token : s.list("--tokens")) {
        const TokenId id = std::atoi(token.c_str());
        asked_for.push_back({id, truth.count(id)});
      }
      return asked_for;
    }
    return choose_targets(
        truth, {.q_low = std::atof(band.at(0).c_str()), .q_high = std::atof(band.at(1).c_str()), .count = n});
  }
  return {};
}

// Without counts: tokens that some inputs nearly say, the closest first.
inline std::vector<GridTarget> nearly_said(const Settings& s, const Asked& asked, std::size_t n,
                                           ThreadPool& pool) {
  constexpr std::size_t kAtOnce = 64;
  const std::size_t n_inputs = s.count("--look") / kAtOnce * kAtOnce;
  const std::size_t d = asked.model.config().d_model, v = asked.model.config().d_vocab;
  std::vector<TokenId> tokens(n_inputs * asked.dist.length());
  sample_range(asked.dist, 12345, 0, pool, tokens);
  AlignedVector<float> resid(n_inputs * d), found(kAtOnce * v);
  final_residuals(asked.model.transformer, {tokens, asked.dist.length()}, pool, {resid.data(), d});
  std::vector<float> closest(v, -1e30f);
  for (std::size_t first = 0; first < n_inputs; first += kAtOnce) {
    logits(asked.model.head(), kAtOnce, {resid.data() + first * d, d}, pool, {found.data(), v});
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const float* row = found.data() + i * v;
      const float best = *std::max_element(row, row + v);
      for (std::size_t t = 0; t < v; ++t) closest[t] = std::max(closest[t], row[t] - best);
    }
  }
  std::vector<TokenId> order(v);
  for (std::size_t t = 0; t < v; ++t) order[t] = static_cast<TokenId>(t);
  std::erase_if(order, [&](TokenId t) { return closest[static_cast<std::size_t>(t)] >= 0.0f; });
  std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return closest[static_cast<std::size_t>(a)] > closest[static_cast<std::size_t>(b)];
  });
  std::vector<GridTarget> out;
  for (std::size_t i = 0; i < std::min(n, order.size()); ++i) out.push_back({order[i], 0});
  return out;
}

inline std::vector<GridTarget> some_targets(const Settings& s, const Asked& asked, std::size_t n,
                                            ThreadPool& pool) {
  std::uint64_t samples = 0;
  const auto counted = targets_of_truth(s, asked, n, samples);
  return counted.empty() ? nearly_said(s, asked, n, pool) : counted;
}

}  // namespace deeptail
