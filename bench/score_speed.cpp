// Score evaluations per second: "is the margin at least this level?" by MarginTest with a Screen, against the
// dense form on the same threads (one OpenBLAS product over the whole vocabulary, then the largest of each
// row).
//   score_speed [--threads 2]                                         the zoo's dt-1l and dt-4l
//   score_speed [--threads 2] --unembed w.safetensors --activations a.npy
// Rows are those of a splitting run (score_rows.h): proposals at a level, 20 to 60% of them accepted. Every
// decision is first compared with margins(), where one wrong is an error; OpenBLAS rounds differently, so its
// own are only counted.
#include <cblas.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "deeptail/inputs.h"
#include "score_rows.h"

extern "C" void openblas_set_num_threads(int);

namespace deeptail {
namespace {

constexpr std::size_t kParticles = 1024, kBlock = 96;

template <class Body>
double best_seconds(Body body) {
  double best = INFINITY;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// The dense form: rows after ln_final times W_U, all logits in memory, then two maxima.
class Dense {
 public:
  Dense(const Head& head, const Target& target, ThreadPool& pool)
      : head_(head), target_(target), pool_(pool) {
    w_.resize(head.d_model() * head.d_vocab());
    for (std::size_t k = 0; k < head.d_model(); ++k)
      for (std::size_t j = 0; j < head.d_vocab(); ++j) w_[k * head.d_vocab() + j] = head.w_u.at(k, j);
  }
  // One product for all rows, OpenBLAS on all threads; or one per block of rows and worker, which suits it
  // better where other programs want the cores as well.
  void at_least(bool one_product, float level, std::size_t n, ConstRows resid, std::span<std::uint8_t> out) {
    const std::size_t d = head_.d_model(), d_vocab = head_.d_vocab(), blocks = (n + kBlock - 1) / kBlock;
    normed_.resize(n * d), logits_.resize(n * d_vocab);
    openblas_set_num_threads(one_product ? static_cast<int>(pool_.size()) : 1);
    const auto each_block = [&](auto body) {
      pool_.for_each_block(
          blocks, [&](std::size_t b, std::size_t) { body(b * kBlock, std::min(kBlock, n - b * kBlock)); });
    };
    each_block([&](std::size_t first, std::size_t count) {
      head_.normalise(count, resid.from(first), {normed_.data() + first * d, d});
      for (std::size_t i = first; i < first + count; ++i)
        std::copy_n(head_.w_u.bias(), d_vocab, logits_.data() + i * d_vocab);
      if (!one_product) multiply(first, count), decide(first, count, level, out);
    });
    if (!one_product) return;
    multiply(0, n);
    each_block([&](std::size_t first, std::size_t count) { decide(first, count, level, out); });
  }

 private:
  void multiply(std::size_t first, std::size_t n) {
    const std::size_t d = head_.d_model(), d_vocab = head_.d_vocab();
    const auto size = [](std::size_t v) { return static_cast<blasint>(v); };
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size(n), size(d_vocab), size(d), 1.0f,
                normed_.data() + first * d, size(d), w_.data(), size(d_vocab), 1.0f,
                logits_.data() + first * d_vocab, size(d_vocab));
  }
  void decide(std::size_t first, std::size_t n, float level, std::span<std::uint8_t> out) {
    for (std::size_t i = first; i < first + n; ++i) {
      float* row = logits_.data() + i * head_.d_vocab();
      float best = -INFINITY;
      for (const TokenId id : target_.ids()) {
        best = std::max(best, row[id]);
        row[id] = -INFINITY;
      }
      out[i] = best - best_of(head_.d_vocab(), row).value >= level;
    }
  }

  const Head& head_;
  const Target& target_;
  ThreadPool& pool_;
  std::vector<float> w_;  // [d_model, d_vocab]
  AlignedVector<float> normed_, logits_;
};

class Fast {
 public:
  Fast(const Head& head, const Target& target, const Screen* screen, std::span<const TokenId> winners,
       ThreadPool& pool)
      : test_(head, target, winners, screen), d_(head.d_model()), pool_(pool) {
    for (std::size_t i = 0; i < pool.size(); ++i) scratch_.push_back(test_.make_scratch());
  }
  void at_least(float level, std::size_t n, ConstRows resid, std::span<std::uint8_t> out) {
    pool_.for_each_block((n + kBlock - 1) / kBlock, [&](std::size_t b, std::size_t worker) {
      const std::size_t first = b * kBlock, count = std::min(kBlock, n - first);
      test_.at_least(level, count, resid.from(first), out.subspan(first, count), *scratch_[worker]);
    });
  }

 private:
  MarginTest test_;
  std::size_t d_;
  ThreadPool& pool_;
  std::vector<MarginTest::ScratchPtr> scratch_;
};

struct Tally {
  double dense = 0, fast = 0;  // seconds
  std::size_t n = 0, wrong = 0, blas_differs = 0;
  double ratio() const { return dense / fast; }
};

// Times both forms on the same rows and adds to the tally.
void measure(const ScoreRows& batch, const Target& target, const Head& head, Dense& dense, Fast& fast,
             ThreadPool& pool, Tally& tally) {
  const std::size_t d = head.d_model(), n = batch.rows.size() / d;
  if (n == 0) return;
  const ConstRows rows{batch.rows.data(), d};
  std::vector<Margin> exact(n);
  margins(head, target, n, rows, pool, exact);
  std::vector<std::uint8_t> by_dense(n), by_fast(n);
  const double dense_seconds =
      std::min(best_seconds([&] { dense.at_least(true, batch.level, n, rows, by_dense); }),
               best_seconds([&] { dense.at_least(false, batch.level, n, rows, by_dense); }));
  const double fast_seconds = best_seconds([&] { fast.at_least(batch.level, n, rows, by_fast); });
  tally.dense += dense_seconds, tally.fast += fast_seconds, tally.n += n;
  for (std::size_t i = 0; i < n; ++i) {
    tally.wrong += (by_fast[i] != 0) != (exact[i].value >= batch.level);
    tally.blas_differs += by_dense[i] != by_fast[i];
  }
}

// The rows of a batch that pass its level, or that fail it.
ScoreRows only(bool passing, const ScoreRows& batch, const Target& target, const Head& head,
               ThreadPool& pool) {
  const std::size_t d = head.d_model(), n = batch.rows.size() / d;
  std::vector<Margin> exact(n);
  margins(head, target, n, {batch.rows.data(), d}, pool, exact);
  ScoreRows out{batch.level, passing ? 1.0 : 0.0, {}};
  for (std::size_t i = 0; i < n; ++i)
    if ((exact[i].value >= batch.level) == passing)
      out.rows.insert(out.rows.end(), batch.rows.data() + i * d, batch.rows.data() + (i + 1) * d);
  return out;
}

void print_row(const char* what, double accepted, const Tally& t) {
  std::printf("  %-12s %5.0f%% %12.0f %12.0f %7.1f %8zu %8zu\n", what, 100 * accepted,
              static_cast<double>(t.n) / t.dense, static_cast<double>(t.n) / t.fast, t.ratio(), t.wrong,
              t.blas_differs);
}

// Returns whether the mixed rows reach the bar with no wrong decision.
bool run_case(const char* name, const Head& head, std::size_t n, ConstRows resid, double bar,
              ThreadPool& pool) {
  const std::size_t n_fit = std::min<std::size_t>(n, 4096);
  const Target target({rare_token(head, std::min<std::size_t>(n, 1024), resid, pool)}, head);
  const auto start = std::chrono::steady_clock::now();
  const Screen screen(head, std::min<std::size_t>(n, 1024), resid, pool);
  const double made = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ScoreWalk walk(head, target, screen, fit_gaussian(n_fit, head.d_model(), resid), kParticles, pool);
  const auto batches = walk.run(6, 30);

  std::printf(
      "%s: d_model %zu, d_vocab %zu, target %d, %zu levels from %.1f to %.1f; screen made in %.2f s\n", name,
      head.d_model(), head.d_vocab(), target.ids()[0], batches.size(),
      static_cast<double>(batches.front().level), static_cast<double>(batches.back().level), made);
  std::printf("  %-12s %6s %12s %12s %7s %8s %8s\n", "rows", "accept", "dense/s", "deeptail/s", "ratio",
              "wrong", "BLAS +-");
  Dense dense(head, target, pool);
  Fast fast(head, target, &screen, {}, pool);
  Tally mixed, passing, failing;
  double accepted = 0.0;
  const std::size_t picks = 4;
  for (std::size_t i = 1; i <= picks; ++i) {
    const ScoreRows& batch = batches[i * batches.size() / picks - 1];
    measure(batch, target, head, dense, fast, pool, mixed);
    measure(only(true, batch, target, head, pool), target, head, dense, fast, pool, passing);
    measure(only(false, batch, target, head, pool), target, head, dense, fast, pool, failing);
    accepted += batch.accepted / picks;
  }
  print_row("proposals", accepted, mixed);
  print_row("all pass", 1.0, passing);
  print_row("all fail", 0.0, failing);
  const std::size_t wrong = mixed.wrong + passing.wrong + failing.wrong;
  const bool good = wrong == 0 && mixed.ratio() >= bar;
  std::printf("  %s: proposals %.1f times the dense form (bar %.0f), %zu wrong decisions\n",
              good ? "ok" : "FAILED", mixed.ratio(), bar, wrong);
  return good;
}

bool run_zoo(const char* model_name, const char* dist_name, ThreadPool& pool) {
  const Transformer model = Transformer::load(find_model(model_name));
  const Distribution dist = load_distribution(dist_name);
  const std::size_t n = 4096, d = model.config().d_model;
  std::vector<TokenId> tokens(n * dist.length());
  sample_range(dist, 1, 0, pool, tokens);
  AlignedVector<float> resid(n * d);
  final_residuals(model, {tokens, dist.length()}, pool, {resid.data(), d});
  const std::string name = fmt::format("{} on {}", model_name, dist_name);
  return run_case(name.c_str(), model.head(), n, {resid.data(), d}, 2.0, pool);
}

int run_main(int argc, char** argv) {
  std::string unembed, activations;
  std::size_t threads = 2;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0) threads = std::stoul(argv[i + 1]);
    if (std::strcmp(argv[i], "--unembed") == 0) unembed = argv[i + 1];
    if (std::strcmp(argv[i], "--activations") == 0) activations = argv[i + 1];
  }
  ThreadPool pool(threads);
  if (unembed.empty()) {
    bool good = true;
    for (const char* dist : {"hex", "english"})
      for (const char* model : {"dt-1l", "dt-4l"}) good = run_zoo(model, dist, pool) && good;
    return good ? 0 : 1;
  }
  const Head head = Head::load(unembed);
  const Tensor tensor = read_tensors(activations).at("");
  if (tensor.shape.size() != 2 || static_cast<std::size_t>(tensor.shape[1]) != head.d_model())
    throw InputError("{}: expected shape [n, {}], found {}", activations, head.d_model(),
                     shape_text(tensor.shape));
  const std::vector<float> resid = to_float(tensor);
  return run_case("unembedding", head, resid.size() / head.d_model(), {resid.data(), head.d_model()}, 3.0,
                  pool)
             ? 0
             : 1;
}

}  // namespace
}  // namespace deeptail

int main(int argc, char** argv) {
  try {
    return deeptail::run_main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "score_speed: %s\n", e.what());
    return 1;
  }
}
