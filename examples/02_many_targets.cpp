// Several targets of one model: what can be read off a cloud of activations is captured once, and each target
// then takes milliseconds. (gld extrapolates a normal tail: quick, and only as good as that guess.)
#include <deeptail/deeptail.h>

#include <cmath>
#include <cstdio>

int main() {
  using namespace deeptail;
  const LoadedModel model = load_model("dt-1l");
  const Distribution hex = load_distribution("hex", model);
  ThreadPool pool;
  const Activations cloud = capture(model.transformer, hex, {.count = 8192, .seed = 1}, pool);
  const Method method = make_method("gld", {});
  for (const char* token : {"ly", "ic", " the"}) {
    const NextToken says(Target({*model.tokenizer->tokenizer.id_of(token)}, model.head()));
    const Estimate e = run_method(method, {model.head(), cloud, says}, 1, pool);
    std::printf("%-6s %.2g [%.2g, %.2g]\n", token, std::exp(e.log_p), std::exp(e.log_low),
                std::exp(e.log_high));
  }
}
