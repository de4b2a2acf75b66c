// tokensplit as a row of the methods.
#include "deeptail/payoff.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

constexpr SettingRow kRelError{
    .key = "rel_error",
    .help = "Fewer particles where the pilot says that they give this relative standard error",
    .kind = SettingKind::kNumber,
    .about_work = true};
constexpr SettingRow kFirstDraw{.key = "first_draw", .help = "Plain samples that each replica starts from"};
constexpr SettingRow kSurviveFraction{.key = "survive_fraction",
                                      .help = "Share that survives a level of the pilot",
                                      .kind = SettingKind::kNumber,
                                      .high = 1.0,
                                      .usual = "0.2"};
constexpr SettingRow kForgotten{.key = "forgotten",
                                .help = "Moves go on until this correlation with the start of the level",
                                .kind = SettingKind::kNumber,
                                .high = 1.0,
                                .usual = "0.1"};
constexpr SettingRow kTaper{.key = "taper",
                            .help = "Particles at the first level over those at the last",
                            .kind = SettingKind::kNumber,
                            .low = 1.0,
                            .with_ends = true,
                            .usual = "8"};
constexpr SettingRow kTilt{
    .key = "tilt",
    .help =
        "Draw rare tokens more often, with weights: those that a scan finds, and (auto) that replicas find",
    .kind = SettingKind::kChoice,
    .words = EnumNames<Tilting>::kAll,
    .usual = "auto"};
constexpr const SettingRow* kTokensplitSettings[] = {
    &kBudget,          &kReplicas,  &kRelError, &kParticles, &kFirstDraw, &kMovesPerLevel,
    &kSurviveFraction, &kForgotten, &kTaper,    &kTilt,      &kDevice};

struct TokensplitSettings {
  TokensplitConfig config = {};
  Device device = Device::kCpu;

  double budget(const Question& q) const {
    if (config.budget > 0.0) return config.budget;
    return q.event->answer_length() > 0 ? static_budget(q.model->config(), *q.law, *q.event)
                                        : tokensplit_budget(q.model->config(), *q.law, device);
  }
  TokensplitConfig with_seed(std::uint64_t seed) const {
    TokensplitConfig c = config;
    c.seed = seed;
    return c;
  }
};

TokensplitSettings read_tokensplit(SettingReader& s) {
  TokensplitSettings out;
  TokensplitConfig& config = out.config;
  s.take(kBudget, config.budget);
  s.take(kReplicas, config.replicas);
  s.take(kRelError, config.rel_error);
  s.take(kParticles, config.particles);
  s.take(kFirstDraw, config.first_draw);
  s.take(kMovesPerLevel, config.moves);
  s.take(kSurviveFraction, config.survive_fraction);
  s.take(kForgotten, config.forgotten);
  s.take(kTaper, config.taper);
  s.take(kTilt, config.tilt);
  s.take(kDevice, out.device);
  config.validate();
  return out;
}

Method make_tokensplit(SettingReader& s) {
  const TokensplitSettings settings = read_tokensplit(s);
  const bool on_cuda = settings.device == Device::kCuda;
  const auto work = [settings](const Question& q) { return static_cast<std::uint64_t>(settings.budget(q)); };
  Method method{
      .settle = [work](const Question& q, SettingValues& values) { set_value(values, kBudget, work(q)); },
      .needs_tables = on_cuda,
      .needs_next_token = on_cuda,
      .one_token = on_cuda,
      .enumerates = true,
      .device = settings.device,
      .unit = "forwards",
      .work = work,
      .run =
          [settings, on_cuda](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch& watch) {
            const TokensplitConfig config = settings.with_seed(seed);
            return on_cuda ? tokensplit_on_cuda(*q.model, *q.tables(), *q.next_token(), config, watch)
                   : q.event->answer_length() > 0
                       ? static_split(*q.model, *q.law, *q.event, config, pool, watch)
                       : tokensplit(*q.model, *q.law, *q.event, config, pool, watch);
          }};
  if (on_cuda)
    method.run_many = [settings](std::span<const MethodTask> tasks, const Answers& answers, ThreadPool&,
                                 const Watch& watch) {
      std::vector<TokensplitTask> all;
      for (const auto& [question, seed] : tasks)
        all.push_back({*question.next_token(), settings.with_seed(seed)});
      const Question& first = tasks.front().question;
      tokensplit_many(*first.model, *first.tables(), all, answers, kTargetsAtOnce, watch);
    };
  return method;
}

// Everything but what is about tables: a law that raises rare tokens, and a device.
constexpr const SettingRow* kStaticSettings[] = {&kBudget,          &kReplicas,  &kRelError,
                                                 &kParticles,       &kFirstDraw, &kMovesPerLevel,
                                                 &kSurviveFraction, &kForgotten, &kTaper};

Method make_static(SettingReader& s) {
  TokensplitConfig config;
  s.take(kBudget, config.budget);
  s.take(kReplicas, config.replicas);
  s.take(kRelError, config.rel_error);
  s.take(kParticles, config.particles);
  s.take(kFirstDraw, config.first_draw);
  s.take(kMovesPerLevel, config.moves);
  s.take(kSurviveFraction, config.survive_fraction);
  s.take(kForgotten, config.forgotten);
  s.take(kTaper, config.taper);
  config.validate();
  const auto work = [config](const Question& q) {
    return static_cast<std::uint64_t>(
        config.budget > 0.0 ? config.budget : static_budget(q.model->config(), *q.law, *q.event));
  };
  return {.settle = [work](const Question& q, SettingValues& values) { set_value(values, kBudget, work(q)); },
          .enumerates = true,
          .unit = "texts",
          .work = work,
          .run =
              [config](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch& watch) {
                TokensplitConfig c = config;
                c.seed = seed;
                Estimate e = static_split(*q.model, *q.law, *q.event, c, pool, watch);
                e.method = "static";
                return e;
              }};
}

}  // namespace

constinit const MethodRow kStaticRow{.name = "static",
                                     .help = "splitting on sampled texts",
                                     .settings = kStaticSettings,
                                     .colour = 9,
                                     .make = make_static};

constinit const MethodRow kTokensplitRow{.name = "tokensplit",
                                         .help = "splitting on tokens",
                                         .settings = kTokensplitSettings,
                                         .colour = 0,
                                         .make = make_tokensplit};

}  // namespace deeptail
