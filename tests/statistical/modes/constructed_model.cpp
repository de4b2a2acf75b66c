#include "constructed_model.h"

#include <algorithm>
#include <cmath>

#include "lock_neurons.h"
#include "one_layer_weights.h"

namespace deeptail::modes {

namespace {

constexpr double kEps = 1e-5;
constexpr double kAttend = 40.0;  // of scores: what other positions get is below rounding
constexpr double kSteep = 20.0;   // GELU's arguments are at least this far from 0, where it is a hinge
constexpr double kSmall = 0.1;    // what an input changes, beside a constant of 1 and an embedding
constexpr double kBehind = 30.0;  // logits of all other tokens, below kRival's

// Which feature is which.
struct Features {
  explicit Features(const Problem& problem)
      : n_context(problem.context().effects().size()),
        n_code(problem.lock().positions.size() * code_width(problem.lock())),
        length(problem.law().facts().max_length) {}

  std::size_t n_context, n_code, length;

  // Of embeddings: units by position, codes by position of the lock, what makes lengths equal, positions.
  std::size_t units(std::size_t j) const { return j; }
  std::size_t token_code(std::size_t i) const { return n_context + i; }
  std::size_t rest() const { return n_context + n_code; }
  std::size_t position(std::size_t p) const { return rest() + 1 + p; }
  // What attention brings: the sum of units, codes, and a constant.
  std::size_t sum() const { return position(length); }
  std::size_t code(std::size_t i) const { return sum() + 1 + i; }
  std::size_t one() const { return sum() + 1 + n_code; }
  // What the MLP adds.
  std::size_t score() const { return one() + 1; }

  std::size_t size() const { return score() + 1; }
  // What a norm divides by where squares of features sum to this.
  double deviation(double squares) const { return std::sqrt(squares / static_cast<double>(size()) + kEps); }
};

class Builder {
 public:
  explicit Builder(const Problem& problem)
      : problem_(problem),
        lock_(problem.lock()),
        effects_(problem.context().effects()),
        width_(code_width(lock_)),
        bound_(static_cast<double>(problem.context().bound())),
        unit_size_(unit_size()),
        neurons_(lock_neurons(problem)),
        f_(problem),
        w_(config()) {}

  Transformer model() {
    embed();
    attend();
    compute();
    unembed();
    return w_.model();
  }

 private:
  ModelConfig config() const {
    return {.model_name = problem_.name(),
            .n_layers = 1,
            .d_model = 2 * f_.size(),
            .n_heads = effects_.size() + lock_.positions.size(),
            .d_head = width_,
            .d_mlp = neurons_.size(),
            .n_ctx = f_.length,
            .d_vocab = problem_.law().facts().d_vocab,
            .eps = static_cast<float>(kEps),
            .tokenizer_file = ""};
  }

  // m: [.., d_model]; row r gets x of a feature.
  void write(const std::string& name, std::size_t r, std::size_t feature, double x) {
    float* row = w_[name].data() + r * 2 * f_.size();
    row[feature] = static_cast<float>(x);
    row[f_.size() + feature] = static_cast<float>(-x);
  }
  // m: [d_model, columns], of a head or of all; a column sees a feature times x.
  void read(const std::string& name, std::size_t head, std::size_t columns, std::size_t feature,
            std::size_t column, double x) {
    float* m = w_[name].data() + head * 2 * f_.size() * columns;
    m[feature * columns + column] = static_cast<float>(0.5 * x);
    m[(f_.size() + feature) * columns + column] = static_cast<float>(-0.5 * x);
  }

  // Features of token embeddings have squares that sum to 1, units and codes at most half of it each.
  double unit_size() const {
    double most = 1.0;
    for (std::size_t id = 0; id < problem_.law().facts().d_vocab; ++id) {
      double squares = 0.0;
      for (const ContextSum::Effects& e : effects_) squares += static_cast<double>(e.of[id]) * e.of[id];
      most = std::max(most, squares);
    }
    return std::sqrt(0.5 / most);
  }
  double code_size() const { return std::sqrt(0.5 / static_cast<double>(f_.n_code)); }
  double norm1() const { return f_.deviation(2.0); }  // a token's 1 and its position's

  void embed() {
    const double size = code_size();
    std::vector<double> rest(w_.config().d_vocab, 1.0);
    const auto put = [&](std::size_t id, std::size_t feature, double x) {
      write("embed.W_E", id, feature, x);
      rest[id] -= x * x;
    };
    for (std::size_t j = 0; j < effects_.size(); ++j)
      for (std::size_t id = 0; id < rest.size(); ++id)
        put(id, f_.units(j), unit_size_ * static_cast<double>(effects_[j].of[id]));
    for (std::size_t m = 0; m < lock_.modes.size(); ++m)
      for (std::size_t p = 0; p < lock_.positions.size(); ++p)
        for (std::size_t i = 0; i < width_; ++i)
          put(static_cast<std::size_t>(lock_.modes[m][p]), f_.token_code(p * width_ + i), size * code(m, i));
    for (std::size_t id = 0; id < rest.size(); ++id) write("embed.W_E", id, f_.rest(), std::sqrt(rest[id]));
    for (std::size_t p = 0; p < f_.length; ++p) write("pos_embed.W_pos", p, f_.position(p), 1.0);
  }

  // Head h looks at one position, whatever the last token is.
  void look_at(std::size_t h, std::size_t position) {
    w_["blocks.0.attn.b_Q"][h * width_] =
        static_cast<float>(kAttend * std::sqrt(static_cast<double>(width_)));
    read("blocks.0.attn.W_K", h, width_, f_.position(position), 0, norm1());
  }
  // And brings a feature of its token, divided by `size`, times `x`.
  void bring(std::size_t h, std::size_t dim, std::size_t from, double size, std::size_t to, double x) {
    read("blocks.0.attn.W_V", h, width_, from, dim, norm1() / size);
    write("blocks.0.attn.W_O", h * width_ + dim, to, x);
  }
  double sum_size() const { return kSmall / bound_; }
  double brought_code_size() const { return kSmall / std::sqrt(static_cast<double>(f_.n_code)); }

  void attend() {
    const std::size_t n = effects_.size();
    for (std::size_t j = 0; j < n; ++j) {
      look_at(j, effects_[j].position);
      bring(j, 0, f_.units(j), unit_size_, f_.sum(), sum_size());
    }
    for (std::size_t p = 0; p < lock_.positions.size(); ++p) {
      look_at(n + p, lock_.positions[p]);
      for (std::size_t i = 0; i < width_; ++i)
        bring(n + p, i, f_.token_code(p * width_ + i), code_size(), f_.code(p * width_ + i),
              brought_code_size());
    }
    write("blocks.0.attn.b_O", 0, f_.one(), 1.0);
  }

  double norm2() const { return f_.deviation(3.0); }  // an embedding's 2 and the constant
  double score_size() const {
    double most = 0.0;
    for (const Row& row : lock_.rows)
      most = std::max(most, row.slope * (bound_ + std::abs(static_cast<double>(row.threshold))));
    return kSmall * kUnitsPerSd / most;
  }

  void compute() {
    for (std::size_t k = 0; k < neurons_.size(); ++k) {
      const Neuron& neuron = neurons_[k];
      const auto see = [&](std::size_t feature, double x) {
        read("blocks.0.mlp.W_in", 0, neurons_.size(), feature, k, kSteep * norm2() * x);
      };
      see(f_.sum(), neuron.units / sum_size());
      for (std::size_t i = 0; i < f_.n_code; ++i) see(f_.code(i), neuron.codes[i] / brought_code_size());
      see(f_.one(), neuron.constant);
      write("blocks.0.mlp.W_out", k, f_.score(), neuron.out * score_size() / kSteep);
    }
  }

  void unembed() {
    const std::size_t d_vocab = w_.config().d_vocab;
    for (std::size_t id = 0; id < d_vocab; ++id)
      read("unembed.W_U", 0, d_vocab, f_.one(), id, -kBehind * norm2());
    for (const TokenId id : {kTarget, kRival})
      read("unembed.W_U", 0, d_vocab, f_.one(), static_cast<std::size_t>(id), 0.0);
    read("unembed.W_U", 0, d_vocab, f_.score(), kTarget, norm2() / score_size());
  }

  const Problem& problem_;
  const Lock& lock_;
  const std::vector<ContextSum::Effects>& effects_;
  std::size_t width_;
  double bound_, unit_size_;
  std::vector<Neuron> neurons_;
  Features f_;
  OneLayerWeights w_;
};

}  // namespace

Transformer constructed_model(const Problem& problem) { return Builder(problem).model(); }

}  // namespace deeptail::modes
