// An event of your own: the model gives " the" at least 40 % of the probability. The score is any number that
// is at or above 0 where the event happens and larger nearer to it; here log p(" the") - log 0.4.
#include <deeptail/deeptail.h>

#include <cmath>
#include <cstdio>

int main() {
  using namespace deeptail;
  const LoadedModel model = load_model("dt-1l");
  const auto law = load_law("english", model);
  const auto token = static_cast<std::size_t>(*model.tokenizer->tokenizer.id_of(" the"));
  const std::size_t d_model = model.config().d_model, d_vocab = model.config().d_vocab;

  const CallbackEvent event("gives \" the\" 40 %", [&](const EventInputs& asked, std::span<double> out) {
    ThreadPool pool(1);  // the replicas already share the cores
    AlignedVector<float> resid(out.size() * d_model), scores(out.size() * d_vocab);
    final_residuals(model.transformer, asked.inputs, pool, {resid.data(), d_model});
    logits(model.head(), out.size(), {resid.data(), d_model}, pool, {scores.data(), d_vocab});
    for (std::size_t i = 0; i < out.size(); ++i) {
      double sum = 0.0;
      for (std::size_t k = 0; k < d_vocab; ++k) sum += std::exp(static_cast<double>(scores[i * d_vocab + k]));
      out[i] = static_cast<double>(scores[i * d_vocab + token]) - std::log(sum) - std::log(0.4);
    }
  });

  ThreadPool pool;
  const Estimate e = tokensplit(model.transformer, *law, event, {.budget = 6000}, pool);
  std::printf("p = %.3g, 95%% interval [%.3g, %.3g]\n", std::exp(e.log_p), std::exp(e.log_low),
              std::exp(e.log_high));
}
