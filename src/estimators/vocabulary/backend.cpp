#include "estimators/vocabulary/backend.h"

#include <memory>

#ifdef DEEPTAIL_HAS_CUDA
#include "estimators/tokensplit/on_cuda.h"
#endif

namespace deeptail {

AllBackend cpu_backend(const Transformer& model, const Distribution& dist, const FirstLayerTable* table,
                       ThreadPool& pool) {
  const auto resid = std::make_shared<AlignedVector<float>>();
  const auto say = [&model, table, &pool, resid](TokenBatch inputs, std::span<TokenId> said) {
    const std::size_t n = said.size(), d = model.config().d_model;
    if (resid->size() < n * d) resid->resize(n * d);
    final_residuals(model, inputs, pool, {resid->data(), d}, table);
    argmax(model.head(), n, {resid->data(), d}, pool, said);
  };
  const auto ask = [&model, &dist, &pool](std::span<const TokensplitTask> tasks, const Answers& answers,
                                          const Watch& watch) {
    double before = 0.0;  // of the work of earlier tasks
    bool goes_on = true;
    for (std::size_t i = 0; i < tasks.size() && goes_on; ++i) {
      const auto told = [&](const Progress& p) {
        goes_on = deeptail::goes_on(watch, progress_of(static_cast<std::uint64_t>(before) + p.done, p.total));
        return goes_on;
      };
      Estimate e = tokensplit(model, dist, tasks[i].target, tasks[i].config, pool, told);
      before += e.cost.forward_equivalents;
      if (goes_on) answers.on_estimate(i, std::move(e));
    }
  };
  return {.say = say, .ask = ask};
}

#ifdef DEEPTAIL_HAS_CUDA

AllBackend cuda_backend(const Transformer& model, const Distribution& dist) {
  struct Particles {
    explicit Particles(std::unique_ptr<ParticleDevice> made) : device(std::move(made)), service(*device) {}
    std::unique_ptr<ParticleDevice> device;
    ParticleService service;
  };
  std::shared_ptr<Particles> particles;
  try {
    particles = std::make_shared<Particles>(make_cuda_particles(model, dist));
  } catch (const cuda::Failure& failure) {
    throw DeviceError(Device::kCuda, failure.what());
  }
  // The margin of any token says which one is the best.
  const auto say = [particles](TokenBatch inputs, std::span<TokenId> said) {
    std::vector<Margin> margins(said.size());
    particles->service.margins(inputs.tokens, inputs.length, 0, margins);
    for (std::size_t i = 0; i < said.size(); ++i)
      said[i] = margins[i].event() ? margins[i].best_target : margins[i].best_other;
  };
  const auto ask = [&model, &dist](std::span<const TokensplitTask> tasks, const Answers& answers,
                                   const Watch& watch) {
    tokensplit_many(model, dist, tasks, answers, kTargetsAtOnce, watch);
  };
  return {.say = say, .ask = ask};
}

#else

AllBackend cuda_backend(const Transformer&, const Distribution&) {
  throw DeviceError::not_built(Device::kCuda);
}

#endif

}  // namespace deeptail
