// Times decoding on one model. Called by bench/decoding_vs_pytorch, which makes the files and checks the answers.
//   decode_bench MODEL_DIR PROMPTS.npy [n, given] LENGTH THREADS TEXTS.npy [n, LENGTH] LOGITS.npy [n, d_vocab]
// Texts are sampled at temperature 1 from their prompts to LENGTH tokens, then their second halves anew from kept keys. A prompt
// that is the same for all of them is read once, in the time that is measured.
// Writes the texts and the logits from which their last tokens were drawn; prints one JSON object.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/random.h"
#include "deeptail/sampling.h"

namespace deeptail {
namespace {

// New tokens per second by the clock and by the time that threads ran, the best of several rounds.
struct Rate {
  double by_clock = 0.0, by_cpu = 0.0;
};

class Bench {
 public:
  Bench(const Transformer& model, const Tensor& prompts, std::size_t length, ThreadPool& pool)
      : model_(model),
        n_(static_cast<std::size_t>(prompts.shape[0])),
        given_(static_cast<std::size_t>(prompts.shape[1])),
        length_(length),
        tokens_(n_ * length),
        logits_(n_ * model.config().d_vocab),
        pool_(pool),
        laws_(pool.size(), NextTokenLaw({}, model.config().d_vocab)) {
    const std::vector<std::int64_t> ids = to_int64(prompts);
    for (std::size_t i = 0; i < n_; ++i)
      std::transform(&ids[i * given_], &ids[i * given_] + given_, &tokens_[i * length_],
                     [](std::int64_t id) { return static_cast<TokenId>(id); });
    one_prompt_ = n_ > 1;
    for (std::size_t i = 1; i < n_; ++i)
      one_prompt_ &= std::equal(&tokens_[0], &tokens_[given_], &tokens_[i * length_]);
    begin();
  }

  Rate from_prompts(int rounds) { return rate(rounds, given_, 0); }
  Rate second_halves(int rounds) { return rate(rounds, (given_ + length_) / 2, (given_ + length_) / 2); }

  void write(const std::string& texts, const std::string& logits) const {
    const std::vector<float> ids(tokens_.begin(), tokens_.end());
    write_npy(texts, ids, std::vector<std::int64_t>{signed_size(n_), signed_size(length_)});
    write_npy(logits, logits_,
              std::vector<std::int64_t>{signed_size(n_), signed_size(model_.config().d_vocab)});
  }
  double flops() const {
    return decoding_flops(model_.config(), given_, length_) / static_cast<double>(length_ - given_);
  }

 private:
  static std::int64_t signed_size(std::size_t n) { return static_cast<std::int64_t>(n); }

  void begin() {
    const std::span<const TokenId> prompt{tokens_.data(), one_prompt_ ? given_ : 0};
    decoder_.reset();
    decoder_.emplace(model_, n_, length_, pool_, prompt);
  }

  Rate rate(int rounds, std::size_t from, std::size_t valid) {
    Rate best;
    for (int round = 0; round < rounds; ++round) {
      std::vector<Decoder::Text> texts;
      for (std::size_t i = 0; i < n_; ++i)
        texts.push_back({.slot = i, .tokens = &tokens_[i * length_], .length = from, .valid = valid});
      const auto start = std::chrono::steady_clock::now();
      const std::clock_t used = std::clock();
      if (one_prompt_ && valid == 0) begin();
      decoder_->run(
          texts, [&](std::size_t i, std::size_t length, std::span<const float> logits, std::size_t worker) {
            if (length + 1 == length_) std::ranges::copy(logits, &logits_[i * logits.size()]);
            laws_[worker].set(logits);
            return laws_[worker].draw(uniform64({static_cast<std::uint64_t>(round), Stream::kInputs}, i,
                                                static_cast<std::uint32_t>(length)));
          });
      const auto tokens = static_cast<double>(n_ * (length_ - from));
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      best.by_clock = std::max(best.by_clock, tokens / seconds.count());
      best.by_cpu = std::max(best.by_cpu, tokens * CLOCKS_PER_SEC / static_cast<double>(std::clock() - used));
    }
    return best;
  }

  const Transformer& model_;
  std::size_t n_, given_, length_;
  std::vector<TokenId> tokens_;  // [n, length]
  std::vector<float> logits_;    // [n, d_vocab]
  ThreadPool& pool_;
  bool one_prompt_ = false;
  std::optional<Decoder> decoder_;
  std::vector<NextTokenLaw> laws_;
};

int run_main(char** argv) {
  const Transformer model = Transformer::load(argv[1]);
  ThreadPool pool(std::stoul(argv[4]));
  Bench bench(model, read_tensors(argv[2]).at(""), std::stoul(argv[3]), pool);
  const Rate decoded = bench.from_prompts(3), again = bench.second_halves(3);
  bench.write(argv[5], argv[6]);
  const nlohmann::json out = {
      {"decoded_per_s", decoded.by_clock}, {"decoded_per_cpu_s", decoded.by_cpu},
      {"again_per_s", again.by_clock},     {"again_per_cpu_s", again.by_cpu},
      {"flop_per_token", bench.flops()},   {"simd", simd_name()},
  };
  std::puts(out.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace deeptail

int main(int argc, char** argv) {
  if (argc != 7)
    return std::fputs("usage: decode_bench MODEL_DIR PROMPTS.npy LENGTH THREADS TEXTS.npy LOGITS.npy\n",
                      stderr),
           2;
  try {
    return deeptail::run_main(argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "decode_bench: %s\n", e.what());
    return 1;
  }
}
