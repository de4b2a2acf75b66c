#include "deeptail/itgis.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "core/stopwatch.h"
#include "estimators/input_screen.h"
#include "estimators/log_weights.h"
#include "estimators/token_gradients.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kItgisScreenPart = 0;
constexpr double kFewHits = 10.0;
constexpr std::size_t kNeighbours = 6;

// The proposal at one position: g(token) = p(token) e^(score / temperature) / Z.
struct Tilt {
  std::vector<double> cumulative;  // [size]: of the unnormalised g
  std::vector<double> log_weight;  // [size]: log p / g = log Z - score / temperature
  LogMoments log_moments = {};
};

// scores: [size], already divided by the temperature.
void set_tilt(const std::vector<double>& prior, const float* scores, Tilt& tilt) {
  const std::size_t n = prior.size();
  tilt.cumulative.resize(n), tilt.log_weight.resize(n);
  const double top = static_cast<double>(*std::max_element(scores, scores + n));
  double total = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    total += prior[i] * std::exp(static_cast<double>(scores[i]) - top);
    tilt.cumulative[i] = total;
  }
  const double log_z = std::log(total) + top;
  std::array<double, kMomentPowers.size()> moments = {};
  for (std::size_t i = 0; i < n; ++i) {
    const double p = prior[i];
    const double g = tilt.cumulative[i] - (i > 0 ? tilt.cumulative[i - 1] : 0.0);
    tilt.log_weight[i] = log_z - static_cast<double>(scores[i]);
    double power = p * total / g;  // w, then w^2, w^4, w^8
    for (double& moment : moments) {
      moment += p * power;
      power *= power;
    }
  }
  for (std::size_t k = 0; k < moments.size(); ++k)
    tilt.log_moments[k] = std::isfinite(moments[k]) ? std::log(moments[k]) : -kLogZero;
}

// One batch: the proposal in, weights, hits and the gradient's sum out.
struct ItgisRun {
  ItgisRun(const Transformer& m, const Distribution& d, const Target& t, const ItgisConfig& c, ThreadPool& p);

  const Transformer& model;
  const Distribution& dist;
  const ItgisConfig& config;
  ThreadPool& pool;
  TokenGradients gradients_of;
  std::unique_ptr<const FirstLayerTable> table;
  Screen screen;
  GradientEngine engine;
  MarginTest test;

  std::size_t n_free, width, group, score_stride;
  // Free positions that share a table, a few at a time: one product for all of them.
  struct Neighbours {
    std::size_t first, count, table;
  };
  std::vector<Neighbours> neighbours;
  std::vector<Tilt> tilts;          // [n_free]
  std::vector<double> mean;         // [n_free, d_model]: decayed sum of the batches' mean gradients
  double mean_weight = 0.0;         // what the decayed sum has to be divided by
  std::vector<TokenId> tokens;      // [batch, length]
  std::vector<double> log_weights;  // [batch]
  std::vector<std::uint8_t> hits;   // [batch]
  std::vector<float> block_sums;    // [blocks, n_free, d_model]: gradients summed over a block of samples

  struct Worker {
    GradientPass pass;
    MarginTest::ScratchPtr scratch;
    std::vector<float> values;
    AlignedVector<float> resid, gradients, mean, scores;
  };
  std::vector<Worker> workers;

  void update_tilts();
  void draw(std::uint64_t sample, std::size_t i);
  void run_block(std::uint64_t first_sample, std::size_t block, std::size_t n, Worker& worker);
  void run_batch(std::uint64_t first_sample, std::size_t n);
  TiltedBatch describe(std::size_t n, bool tilted) const;
};

ItgisRun::ItgisRun(const Transformer& m, const Distribution& d, const Target& t, const ItgisConfig& c,
                   ThreadPool& p)
    : model(m),
      dist(d),
      config(c),
      pool(p),
      gradients_of(m, d),
      table(first_layer_table(m, d, p)),
      screen(screen_for(m, d, derived_seed(c.seed, kItgisScreenPart), p, table.get())),
      engine(m),
      test(m.head(), t, {}, &screen),
      n_free(gradients_of.positions().size()),
      width(m.config().d_model),
      group(GradientPass::good_size(m.config())),
      score_stride(round_up(gradients_of.largest_table(), kPanel)),
      tilts(n_free),
      mean(n_free * width),
      tokens(c.batch * d.length()),
      log_weights(c.batch),
      hits(c.batch),
      block_sums((c.batch + group - 1) / group * n_free * width) {
  for (std::size_t w = 0; w < pool.size(); ++w)
    workers.push_back({GradientPass(engine, t, {group, d.length(), gradients_of.positions()}, table.get()),
                       test.make_scratch(), std::vector<float>(group), AlignedVector<float>(group * width),
                       AlignedVector<float>(group * n_free * width),
                       AlignedVector<float>(kNeighbours * width),
                       AlignedVector<float>(kNeighbours * score_stride)});
  for (std::size_t i = 0; i < n_free; ++i) {
    if (neighbours.empty() || neighbours.back().count == kNeighbours ||
        neighbours.back().table != gradients_of.table_of(i))
      neighbours.push_back({i, 0, gradients_of.table_of(i)});
    ++neighbours.back().count;
  }
  std::vector<TokenId> constant(d.length());
  sample(d, c.seed, 0, constant);  // what the positions that cannot change hold
  for (std::size_t i = 0; i < c.batch; ++i)
    std::copy(constant.begin(), constant.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i * d.length()));
}

void ItgisRun::update_tilts() {
  const double scale = mean_weight > 0.0 ? 1.0 / (mean_weight * config.temperature) : 0.0;
  pool.for_each_block(neighbours.size(), [&](std::size_t b, std::size_t w) {
    const auto [first, count, table_index] = neighbours[b];
    Worker& s = workers[w];
    for (std::size_t k = 0; k < count * width; ++k)
      s.mean[k] = static_cast<float>(mean[first * width + k] * scale);
    gradients_of.scores(table_index, count, {s.mean.data(), width}, {s.scores.data(), score_stride});
    for (std::size_t i = 0; i < count; ++i)
      set_tilt(gradients_of.prior(table_index), s.scores.data() + i * score_stride, tilts[first + i]);
  });
}

void ItgisRun::draw(std::uint64_t sample_number, std::size_t i) {
  double log_weight = 0.0;
  for (std::size_t k = 0; k < n_free; ++k) {
    const Tilt& tilt = tilts[k];
    const std::size_t position = gradients_of.positions()[k];
    const double u = unit_double(
        uniform64({config.seed, Stream::kTilted}, sample_number, static_cast<std::uint32_t>(position)));
    const auto at =
        std::upper_bound(tilt.cumulative.begin(), tilt.cumulative.end() - 1, u * tilt.cumulative.back());
    const auto place = static_cast<std::size_t>(at - tilt.cumulative.begin());
    tokens[i * dist.length() + position] = dist.table(position).ids()[place];
    log_weight += tilt.log_weight[place];
  }
  log_weights[i] = log_weight;
}

void ItgisRun::run_block(std::uint64_t first_sample, std::size_t block, std::size_t n, Worker& s) {
  const std::size_t first = block * group, m = std::min(group, n - first), length = dist.length();
  for (std::size_t i = first; i < first + m; ++i) draw(first_sample + i, i);
  const Rows resid{s.resid.data(), width};
  s.pass.run({std::span(tokens).subspan(first * length, m * length), length}, s.values.data(), resid,
             s.gradients.data());
  test.event(m, resid, std::span(hits).subspan(first, m), *s.scratch);
  float* sum = block_sums.data() + block * n_free * width;
  std::copy_n(s.gradients.data(), n_free * width, sum);
  for (std::size_t i = 1; i < m; ++i) {
    const float* from = s.gradients.data() + i * n_free * width;
    for (std::size_t k = 0; k < n_free * width; ++k) sum[k] += from[k];
  }
}

void ItgisRun::run_batch(std::uint64_t first_sample, std::size_t n) {
  update_tilts();
  const std::size_t blocks = (n + group - 1) / group;
  pool.for_each_block(blocks,
                      [&](std::size_t b, std::size_t w) { run_block(first_sample, b, n, workers[w]); });
  for (double& m : mean) m *= config.decay;
  for (std::size_t b = 0; b < blocks; ++b)
    for (std::size_t k = 0; k < mean.size(); ++k)
      mean[k] += static_cast<double>(block_sums[b * mean.size() + k]) / static_cast<double>(n);
  mean_weight = config.decay * mean_weight + 1.0;
}

TiltedBatch ItgisRun::describe(std::size_t n, bool tilted) const {
  TiltedBatch out{.n = n, .tilted = tilted};
  for (const Tilt& tilt : tilts)
    for (std::size_t k = 0; k < out.log_moments.size(); ++k) out.log_moments[k] += tilt.log_moments[k];
  return out;
}

// What the batches add up to.
struct ItgisTotals {
  WeightSums all, hits;
  std::vector<BatchSum> batches;
  std::vector<TiltedBatch> proposals;
};

void add_batch(const ItgisRun& run, std::uint64_t first, std::size_t n, ItgisTotals& totals, Estimate& e) {
  WeightSums hits;
  for (std::size_t i = 0; i < n; ++i) {
    totals.all.add(run.log_weights[i]);
    if (!run.hits[i]) continue;
    hits.add(run.log_weights[i]);
    if (e.triggers.size() >= run.config.max_triggers) continue;
    const auto input = std::span(run.tokens).subspan(i * run.dist.length(), run.dist.length());
    e.triggers.push_back({.sample = first + i, .tokens = {input.begin(), input.end()}});
  }
  totals.hits.add(hits);
  totals.batches.push_back({hits.log_sum, std::log(static_cast<double>(n))});
  totals.proposals.push_back(run.describe(n, first > 0));
}

void fill_itgis(Estimate& e, const ItgisTotals& totals) {
  const auto n = static_cast<double>(totals.all.count);
  BatchSpread spread = spread_of(totals.batches);
  // Few batches may agree by chance: never less than the weights of the hits alone have.
  if (totals.hits.count > 0)
    spread.relative_sd =
        std::max(spread.relative_sd, std::sqrt(std::max(0.0, 1.0 / totals.hits.effective() - 1.0 / n)));
  e.log_p = totals.hits.log_sum - std::log(n);
  if (totals.hits.count == 0) {
    e.status = Status::kNotReachedUpperBound;
    e.log_low = kLogZero;
    e.log_high = log_upper_bound(totals.proposals, e.confidence);
  } else {
    const double half = log_half_width(spread.relative_sd, spread.effective_batches, e.confidence);
    e.log_low = std::min(0.0, e.log_p - half);
    e.log_high = std::min(0.0, e.log_p + half);
    if (totals.hits.count == totals.all.count)  // a chance of p^n
      e.log_low = std::min(e.log_low, std::log(0.5 * (1.0 - e.confidence)) / n);
    e.log_certain_low = e.log_p + std::log(1.0 - e.confidence);
    if (e.log_p > 0.0) {
      e.guarantee = Guarantee::kConsistent;
      e.warnings.push_back(
          fmt::format("the mean weight of the hits was {:.6g}: cut to 1", std::exp(e.log_p)));
      e.log_p = 0.0;
    }
  }
  e.diagnostics = {{"hits", static_cast<double>(totals.hits.count)},
                   {"effective_hits", totals.hits.effective()},
                   {"largest_weight_share", totals.hits.largest_share()},
                   {"effective_sample_size", totals.all.effective()},
                   {"effective_batches", spread.effective_batches},
                   {"relative_sd", spread.relative_sd}};
  if (totals.hits.count > 0 && std::min(totals.hits.effective(), spread.effective_batches) < kFewHits)
    e.warnings.push_back(
        fmt::format("the estimate rests on {:.1f} effective hits in {:.1f} effective batches: it is probably "
                    "too low, and "
                    "its interval is a rough guide",
                    totals.hits.effective(), spread.effective_batches));
}

}  // namespace

void ItgisConfig::validate() const {
  if (batch == 0) throw InputError("batch 0: expected at least one sample");
  if (samples < batch) throw InputError("{} samples: expected at least one batch of {}", samples, batch);
  if (!(decay >= 0.0 && decay < 1.0)) throw InputError("decay {}: expected 0 <= decay < 1", decay);
  if (!(temperature > 0.0 && std::isfinite(temperature)))
    throw InputError("temperature {}: expected a positive number", temperature);
}

Estimate itgis(const Transformer& model, const Distribution& dist, const Target& target,
               const ItgisConfig& config, ThreadPool& pool, const Watch& watch) {
  config.validate();
  const Stopwatch stopwatch;
  Estimate e{
      .method = "itgis", .target = target.ids(), .guarantee = Guarantee::kUnbiased, .seed = config.seed};
  ItgisRun run(model, dist, target, config, pool);
  ItgisTotals totals;
  std::uint64_t done = 0;
  while (done < config.samples) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(config.batch, config.samples - done));
    run.run_batch(done, n);
    add_batch(run, done, n, totals, e);
    done += n;
    if (!goes_on(watch, progress_of(done, config.samples))) break;
  }
  fill_itgis(e, totals);
  if (done < config.samples)
    e.warnings.push_back(fmt::format("ended after {} of {} samples", done, config.samples));
  e.cost.forward = e.cost.backward = done;
  // The way back takes the trunk's products once more; it needs no weight gradients.
  e.cost.flops = 2.0 * static_cast<double>(done) * forward_flops(model.config(), dist.length());
  e.cost.forward_equivalents = 2.0 * static_cast<double>(done);
  e.cost.seconds = stopwatch.seconds();
  return e;
}

}  // namespace deeptail
