// ga-amls as a row of the methods.
#include <algorithm>

#include "deeptail/ga_amls.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

constexpr SettingRow kStepSize{.key = "step_size",
                               .help = "Step size at the first level, from which it adapts",
                               .kind = SettingKind::kNumber,
                               .usual = "0.001"};
constexpr SettingRow kPrior{.key = "prior",
                            .help = "Law of whitened activations",
                            .kind = SettingKind::kChoice,
                            .words = EnumNames<GaPrior>::kAll,
                            .usual = "student_t"};
constexpr SettingRow kKernel{.key = "kernel",
                             .help = "How particles move",
                             .kind = SettingKind::kChoice,
                             .words = EnumNames<KernelKind>::kAll,
                             .usual = "mala"};
constexpr SettingRow kTailEvery{
    .key = "tail_every",
    .help = "Under a t prior, every so many moves of rwmh and mala one of pcn, for the tails; 0: none",
    .least = 0,
    .usual = "8"};
constexpr SettingRow kStart{.key = "start",
                            .help = "Particles start at calibration activations or at draws from the prior",
                            .kind = SettingKind::kChoice,
                            .words = EnumNames<GaStart>::kAll,
                            .usual = "calibration"};
constexpr const SettingRow* kGaAmlsSettings[] = {&kCalibration, &kParticles, &kReplicas, &kMovesPerLevel,
                                                 &kStepSize,    &kPrior,     &kKernel,   &kTailEvery,
                                                 &kStart,       &kDevice};

void run_ga_amls_many(const GaAmlsConfig& config, std::span<const MethodTask> tasks, const Answers& answers,
                      const Watch& watch) {
  std::vector<GaAmlsTask> all;
  for (const auto& [question, seed] : tasks)
    all.push_back({.target = *question.next_token(), .seed = seed, .likely_log_p = question.likely_log_p});
  const Question& first = tasks.front().question;
  ThreadPool pool;
  ga_amls_many(*first.head, *first.activations, all, config, answers, kGaTargetsAtOnce, pool, watch);
}

Method make_ga_amls(SettingReader& s) {
  GaAmlsConfig config;
  const std::uint64_t calibration = take_calibration(s);
  s.take(kParticles, config.n_particles);
  s.take(kReplicas, config.replicas);
  s.take(kMovesPerLevel, config.kernel.moves);
  s.take(kStepSize, config.kernel.step_size);
  s.take(kPrior, config.prior);
  s.take(kKernel, config.kernel.kind);
  s.take(kTailEvery, config.kernel.tail_every);
  s.set(kTailEvery, static_cast<std::uint64_t>(config.kernel.tail_every));  // 0 is a choice
  s.take(kStart, config.start);
  s.take(kDevice, config.device);
  config.kernel.burn_in = std::min(config.kernel.burn_in, (config.kernel.moves + 1) / 2);
  config.validate();
  Method method{.calibration = calibration,
                .needs_next_token = true,
                .device = config.device,
                .bytes = [config](std::size_t n, std::size_t d) { return ga_amls_bytes(config, n, d); },
                .run =
                    [config](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch& watch) {
                      GaAmlsConfig c = config;
                      c.seed = seed;
                      c.likely_log_p = q.likely_log_p;
                      return ga_amls(*q.head, *q.activations, *q.next_token(), c, pool, watch);
                    }};
  if (config.device == Device::kCuda)
    method.run_many = [config](std::span<const MethodTask> tasks, const Answers& answers, ThreadPool&,
                               const Watch& watch) { run_ga_amls_many(config, tasks, answers, watch); };
  return method;
}

}  // namespace

constinit const MethodRow kGaAmlsRow{.name = "ga-amls",
                                     .help = "splitting on activations under a fitted prior",
                                     .settings = kGaAmlsSettings,
                                     .colour = 1,
                                     .make = make_ga_amls};

}  // namespace deeptail
