// A distribution made in code: the beginning of text, then four random capital letters and a colon.
#include <deeptail/deeptail.h>

#include <cmath>
#include <cstdio>

int main() {
  using namespace deeptail;
  const LoadedModel model = load_model("dt-1l");
  const Tokenizer& tokenizer = model.tokenizer->tokenizer;
  std::vector<TokenId> letters;
  for (char letter = 'A'; letter <= 'Z'; ++letter)
    letters.push_back(*tokenizer.id_of(std::string(1, letter)));

  Distribution dist;
  dist.name = "letters";
  dist.d_vocab = model.config().d_vocab;
  dist.tables = {TokenTable("start", {0}, {1.0}, "letters"),
                 TokenTable("letter", letters, std::vector<double>(26, 1.0 / 26), "letters"),
                 TokenTable("colon", {*tokenizer.id_of(":")}, {1.0}, "letters")};
  dist.positions = {0, 1, 1, 1, 1, 2};

  ThreadPool pool;
  const Target target({*tokenizer.id_of(" the")}, model.head());
  const Estimate e = mc(model.transformer, dist, target, {.budget = 1 << 14}, pool);
  std::printf("p = %.3g, 95%% interval [%.3g, %.3g]\n", std::exp(e.log_p), std::exp(e.log_low),
              std::exp(e.log_high));
}
