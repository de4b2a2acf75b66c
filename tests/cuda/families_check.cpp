// Every family on the GPU against the CPU, with rates: what was found, then a table.
//   cuda_families_check [--fixtures FOLDER] [--models PATH[=DIST],..] [--inputs N] [--particles N] [--steps N]
//                       [--large 1]
//   fixtures   a folder of models' folders (tests/data/families), inputs of all tokens alike
//   models     others, such as a GGUF file; inputs of 33 tokens of all kinds, or of the distribution after =
//   large      a model of SmolLM2's shape with random weights, at 33 and 128 tokens
// Of each: margins of N inputs for up to 64 targets, which is all logits up to a constant; the token said after
// them; populations moved on both with the same random numbers (particles_check.h); inputs per second.
// Fails when margins differ by 1e-3 or between batches, when another token is said though its margin on the CPU is
// below -1e-3, or when less than 99% of the particles are identical.
#include <cmath>
#include <list>

#include "compute_cuda/dense_model.h"
#include "compute_cuda/truth_engine.h"
#include "particles_check.h"
#include "random_llama.h"

namespace {

using namespace deeptail;

constexpr double kMargin = 1e-3;

struct Found {
  std::string name;
  std::size_t length = 0, compared = 0, said_otherwise = 0, between_batches = 0;
  double worst = 0.0, squares = 0.0, worst_gap = 0.0, device_rate = 0.0, cpu_rate = 0.0;
  int failures = 0;
  double rms() const { return std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, compared))); }
};

// Every token at every position, all alike.
Distribution all_alike(std::size_t d_vocab, std::size_t length) {
  std::vector<TokenId> ids(d_vocab);
  for (std::size_t i = 0; i < d_vocab; ++i) ids[i] = static_cast<TokenId>(i);
  Distribution out;
  out.name = "all-alike", out.d_vocab = d_vocab;
  out.tables.emplace_back("all", ids, std::vector<double>(d_vocab, 1.0 / static_cast<double>(d_vocab)),
                          "all");
  out.positions.assign(length, 0);
  return out;
}

// The CPU's residuals of some inputs, and how many a second.
struct OnCpu {
  OnCpu(const Asked& asked, std::size_t n, ThreadPool& pool)
      : tokens(n * asked.dist.length()), resid(n * asked.model.config().d_model) {
    sample_range(asked.dist, 1, 0, pool, tokens);
    const Seconds clock;
    final_residuals(asked.model.transformer, {tokens, asked.dist.length()}, pool,
                    {resid.data(), asked.model.config().d_model});
    rate = static_cast<double>(n) / clock.spent();
  }
  std::vector<TokenId> tokens;
  AlignedVector<float> resid;
  double rate = 0.0;
};

void compare_margins(const Settings& s, const Asked& asked, std::size_t n, const OnCpu& cpu, ThreadPool& pool,
                     Found& found) {
  const std::size_t length = asked.dist.length(), d = asked.model.config().d_model,
                    v = asked.model.config().d_vocab;
  const auto device = make_cuda_particles(asked.model.transformer, asked.dist);
  std::vector<std::uint32_t> cells(cpu.tokens.size());
  device->encode(cpu.tokens, cells);
  std::vector<Margin> here(n), there(n), again(n);
  const std::size_t n_targets = std::min(v, s.count("--targets"));
  for (std::size_t k = 0; k < n_targets; ++k) {
    const auto target = static_cast<TokenId>(k * v / n_targets);
    margins(asked.model.head(), Target({target}, asked.model.head()), n, {cpu.resid.data(), d}, pool, here);
    const ScorePiece whole{target, cells, there};
    device->score(0, {&whole, 1}, false);
    const std::size_t cut = n - n / 3;  // the last third first, on the other lane
    const auto all = std::span<const std::uint32_t>(cells);
    const ScorePiece parts[] = {{target, all.subspan(cut * length), std::span(again).subspan(cut)},
                                {target, all.first(cut * length), std::span(again).first(cut)}};
    device->score(1, parts, false);
    for (std::size_t i = 0; i < n; ++i, ++found.compared) {
      const double error = std::abs(static_cast<double>(here[i].value) - static_cast<double>(there[i].value));
      found.worst = std::isnan(error) ? 1e30 : std::max(found.worst, error);
      found.squares += error * error;
      found.between_batches += there[i].value != again[i].value;
    }
  }
}

// What is said, and how many inputs a second are counted.
void compare_said(const Asked& asked, std::size_t n, const OnCpu& cpu, ThreadPool& pool, Found& found) {
  const std::size_t d = asked.model.config().d_model;
  cuda::TruthEngine engine(cuda::dense_model(asked.model.transformer), cuda::dense_inputs(asked.dist), 1, {});
  n = std::min(n, engine.batch());
  const std::vector<std::uint32_t> said = engine.decide_exact(0, n).said;
  std::vector<Margin> margin(1);
  for (std::size_t i = 0; i < n; ++i) {
    const Target target({static_cast<TokenId>(said[i])}, asked.model.head());
    margins(asked.model.head(), target, 1, {cpu.resid.data() + i * d, d}, pool, margin);
    found.said_otherwise += margin[0].value < 0.0f;
    found.worst_gap = std::max(found.worst_gap, -static_cast<double>(margin[0].value));
  }
  std::vector<std::uint64_t> counts(asked.model.config().d_vocab);
  std::uint64_t at_once = 4096, done = 0;
  engine.count(0, at_once), engine.collect(counts);  // warm
  const Seconds clock;
  while (clock.spent() < 0.5) {
    engine.count(done, at_once), engine.collect(counts);
    done += at_once;
    if (clock.spent() < 0.1) at_once *= 2;
  }
  found.device_rate = static_cast<double>(done) / clock.spent();
}

Found check_model(const Settings& s, const LoadedModel& model, Distribution dist, ThreadPool& pool) {
  Found found{.name = model.name, .length = dist.length()};
  fmt::print("{}, {} tokens\n", found.name, found.length);
  std::fflush(stdout);
  try {
    const Asked asked{model, std::move(dist)};
    const std::size_t n = s.count("--inputs");
    const OnCpu cpu(asked, n, pool);
    found.cpu_rate = cpu.rate;
    compare_margins(s, asked, n, cpu, pool, found);
    compare_said(asked, n, cpu, pool, found);
    found.failures += (found.worst > kMargin) + (found.between_batches > 0) + (found.worst_gap > kMargin);
    found.failures += check_particles(s, asked, pool);
  } catch (const std::exception& e) {
    fmt::print("  FAILED: {}\n", e.what());
    ++found.failures;
  }
  fmt::print(
      "  margins within {:.1e} (rms {:.1e}), said otherwise {} of {}, {:.0f} inputs/s, CPU {:.0f}; {} "
      "failures\n",
      found.worst, found.rms(), found.said_otherwise, s.count("--inputs"), found.device_rate, found.cpu_rate,
      found.failures);
  std::fflush(stdout);
  return found;
}

// Fewer inputs and moves, where every pass takes long on the CPU.
Settings smaller(Settings s, const char* inputs, const char* particles, const char* steps) {
  s.given["--inputs"] = inputs, s.given["--particles"] = particles, s.given["--steps"] = steps;
  s.given["--targets"] = "8", s.given["--look"] = "64";
  return s;
}

void check_fixtures(const Settings& s, ThreadPool& pool, std::vector<Found>& all) {
  std::vector<std::string> folders;
  if (s.given.at("--fixtures").empty()) return;
  for (const auto& entry : std::filesystem::directory_iterator(s.given.at("--fixtures")))
    if (std::filesystem::exists(entry.path() / "config.json")) folders.push_back(entry.path().string());
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    const LoadedModel model = load_model(folder);
    all.push_back(check_model(s, model, all_alike(model.config().d_vocab, model.config().n_ctx), pool));
  }
}

void check_models(const Settings& s, ThreadPool& pool, std::vector<Found>& all) {
  if (s.given.at("--models").empty()) return;
  for (const std::string& given : s.list("--models")) {
    const std::size_t at = given.find('=');
    const LoadedModel model = load_model(given.substr(0, at));
    const ModelConfig& c = model.config();
    const bool large = c.n_layers * c.d_model > 4096;
    all.push_back(check_model(large ? smaller(s, "64", "64", "4") : s, model,
                              at == std::string::npos
                                  ? all_alike(c.d_vocab, std::min<std::size_t>(33, c.n_ctx))
                                  : load_distribution(given.substr(at + 1), model),
                              pool));
  }
}

void check_large(const Settings& s, ThreadPool& pool, std::vector<Found>& all) {
  if (s.count("--large") == 0) return;
  const RandomLlama random(kSmolLm2Shape);
  const LoadedModel model = random.load("SmolLM2's shape");
  const std::size_t v = model.config().d_vocab;
  all.push_back(check_model(smaller(s, "64", "64", "4"), model, all_alike(v, 33), pool));
  all.push_back(check_model(smaller(s, "16", "0", "0"), model, all_alike(v, 128), pool));
}

void print_row(const Found& f) {
  fmt::print("{:24} {:>6} {:>8} {:>9.1e} {:>9.1e} {:>9} {:>9} {:>8.1e} {:>11.0f} {:>11.0f} {:>9}\n", f.name,
             f.length, f.compared, f.worst, f.rms(), f.between_batches, f.said_otherwise, f.worst_gap,
             f.device_rate, f.cpu_rate, f.failures);
}

int print_table(const std::vector<Found>& all) {
  int failures = 0;
  fmt::print("\n{:24} {:>6} {:>8} {:>9} {:>9} {:>9} {:>9} {:>8} {:>11} {:>11} {:>9}\n", "model", "tokens",
             "margins", "largest", "rms", "batches", "said", "gap", "GPU, in/s", "CPU, in/s", "failures");
  for (const Found& f : all) {
    print_row(f);
    failures += f.failures;
  }
  fmt::print("{} failures\n", failures);
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings s(argc, argv,
                     {{"--fixtures", ""},
                      {"--models", ""},
                      {"--inputs", "512"},
                      {"--particles", "512"},
                      {"--steps", "16"},
                      {"--targets", "64"},
                      {"--large", "0"}});
    fmt::print("{}\n", cuda::device_name());
    ThreadPool pool;
    std::vector<Found> all;
    check_fixtures(s, pool, all);
    check_models(s, pool, all);
    check_large(s, pool, all);
    return print_table(all) > 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
