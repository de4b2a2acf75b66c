// How likely is it that dt-1l says "ly" after an input of the distribution hex?
#include <deeptail/deeptail.h>

#include <cmath>
#include <cstdio>

int main() {
  using namespace deeptail;
  const LoadedModel model = load_model("dt-1l");
  const Distribution hex = load_distribution("hex", model);
  const Target ly({*model.tokenizer->tokenizer.id_of("ly")}, model.head());

  ThreadPool pool;
  const Estimate e = tokensplit(model.transformer, hex, ly, {.budget = 1e5, .seed = 1}, pool);

  std::printf("p = %.3g, 95%% interval [%.3g, %.3g]\n", std::exp(e.log_p), std::exp(e.log_low),
              std::exp(e.log_high));
  for (const Trigger& trigger : e.triggers)
    std::printf("  after %s\n", model.tokenizer->tokenizer.decode_all(trigger.tokens).c_str());
}
