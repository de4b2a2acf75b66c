#include "constructed_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lock_neurons.h"
#include "one_layer_weights.h"

namespace deeptail::modes {

namespace {

constexpr double kEps = 1e-5;
constexpr double kAttend = 40.0;  // of scores, above any other position's: which get less than rounding
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

  // Of embeddings: units by position, codes by position of the lock, what makes lengths equal, a
  // position as a point of a circle.
  std::size_t units(std::size_t j) const { return j; }
  std::size_t token_code(std::size_t i) const { return n_context + i; }
  std::size_t rest() const { return n_context + n_code; }
  std::size_t cosine() const { return rest() + 1; }
  std::size_t sine() const { return rest() + 2; }
  // What attention brings: the sum of units, codes, and a constant.
  std::size_t sum() const { return sine() + 1; }
  std::size_t code(std::size_t i) const { return sum() + 1 + i; }
  std::size_t one() const { return sum() + 1 + n_code; }
  // What the MLP adds.
  std::size_t score() const { return one() + 1; }

  std::size_t size() const { return score() + 1; }
  std::size_t d_model() const { return (size() + 16) / 16 * 16; }  // whole vectors of 16
  // What a norm divides by where squares of features sum to this.
  double deviation(double squares) const {
    return std::sqrt(squares / static_cast<double>(d_model()) + kEps);
  }
};

// [features, d_model]: orthonormal, and the components of each sum to 0. (The reflection that takes (1, 1, ..) to an
// axis, without that axis.)
std::vector<float> directions(const Features& f) {
  const double d = static_cast<double>(f.d_model());
  std::vector<float> out(f.size() * f.d_model(), static_cast<float>(-1.0 / (d - std::sqrt(d))));
  for (std::size_t feature = 0; feature < f.size(); ++feature) {
    float* direction = out.data() + feature * f.d_model();
    direction[0] = static_cast<float>(1.0 / std::sqrt(d));
    direction[feature + 1] = static_cast<float>(1.0 - 1.0 / (d - std::sqrt(d)));
  }
  return out;
}

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
        d_model_(f_.d_model()),
        directions_(directions(f_)),
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
            .d_model = d_model_,
            .n_heads = effects_.size() + lock_.positions.size(),
            .d_head = width_,
            .d_mlp = neurons_.size(),
            .n_ctx = f_.length,
            .d_vocab = problem_.law().facts().d_vocab,
            .eps = static_cast<float>(kEps),
            .tokenizer_file = ""};
  }

  // m: [.., d_model]; x of a feature is added to row r.
  void write(std::vector<float>& m, std::size_t r, std::size_t feature, double x) const {
    const float* direction = directions_.data() + feature * d_model_;
    float* row = m.data() + r * d_model_;
    for (std::size_t d = 0; d < d_model_; ++d) row[d] += static_cast<float>(x) * direction[d];
  }
  // m: [d_model, columns], of a head or of all; a column sees a feature times x, too.
  void read(std::vector<float>& m, std::size_t head, std::size_t columns, std::size_t feature,
            std::size_t column, double x) const {
    const float* direction = directions_.data() + feature * d_model_;
    float* at = m.data() + head * d_model_ * columns + column;
    for (std::size_t d = 0; d < d_model_; ++d) at[d * columns] += static_cast<float>(x) * direction[d];
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
    std::vector<float>&tokens = w_["embed.W_E"], &positions = w_["pos_embed.W_pos"];
    std::vector<double> rest(w_.config().d_vocab, 1.0);
    const auto put = [&](std::size_t id, std::size_t feature, double x) {
      write(tokens, id, feature, x);
      rest[id] -= x * x;
    };
    for (std::size_t j = 0; j < effects_.size(); ++j)
      for (std::size_t id = 0; id < rest.size(); ++id)
        if (effects_[j].of[id] != 0)
          put(id, f_.units(j), unit_size_ * static_cast<double>(effects_[j].of[id]));
    for (std::size_t m = 0; m < lock_.modes.size(); ++m)
      for (std::size_t p = 0; p < lock_.positions.size(); ++p)
        for (std::size_t i = 0; i < width_; ++i)
          put(static_cast<std::size_t>(lock_.modes[m][p]), f_.token_code(p * width_ + i), size * code(m, i));
    for (std::size_t id = 0; id < rest.size(); ++id) write(tokens, id, f_.rest(), std::sqrt(rest[id]));
    for (std::size_t p = 0; p < f_.length; ++p) {
      write(positions, p, f_.cosine(), std::cos(angle(p)));
      write(positions, p, f_.sine(), std::sin(angle(p)));
    }
  }

  double angle(std::size_t position) const {
    return 2.0 * std::numbers::pi * static_cast<double>(position) / static_cast<double>(f_.length);
  }
  // Head h looks at one position, whatever the last token is.
  void look_at(std::size_t h, std::size_t position) {
    const double query = kAttend * std::sqrt(static_cast<double>(width_)) / (1.0 - std::cos(angle(1)));
    w_["blocks.0.attn.b_Q"][h * width_] = static_cast<float>(query);
    read(w_["blocks.0.attn.W_K"], h, width_, f_.cosine(), 0, norm1() * std::cos(angle(position)));
    read(w_["blocks.0.attn.W_K"], h, width_, f_.sine(), 0, norm1() * std::sin(angle(position)));
  }
  // And brings a feature of its token, divided by `size`, times `x`.
  void bring(std::size_t h, std::size_t dim, std::size_t from, double size, std::size_t to, double x) {
    read(w_["blocks.0.attn.W_V"], h, width_, from, dim, norm1() / size);
    write(w_["blocks.0.attn.W_O"], h * width_ + dim, to, x);
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
    write(w_["blocks.0.attn.b_O"], 0, f_.one(), 1.0);
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
        read(w_["blocks.0.mlp.W_in"], 0, neurons_.size(), feature, k, kSteep * norm2() * x);
      };
      see(f_.sum(), neuron.units / sum_size());
      for (std::size_t i = 0; i < f_.n_code; ++i) see(f_.code(i), neuron.codes[i] / brought_code_size());
      see(f_.one(), neuron.constant);
      write(w_["blocks.0.mlp.W_out"], k, f_.score(), neuron.out * score_size() / kSteep);
    }
  }

  void unembed() {
    const std::size_t d_vocab = w_.config().d_vocab;
    std::vector<float>& w_u = w_["unembed.W_U"];
    for (std::size_t id = 0; id < d_vocab; ++id)
      if (id != std::size_t{kTarget} && id != std::size_t{kRival})
        read(w_u, 0, d_vocab, f_.one(), id, -kBehind * norm2());
    read(w_u, 0, d_vocab, f_.score(), kTarget, norm2() / score_size());
  }

  const Problem& problem_;
  const Lock& lock_;
  const std::vector<ContextSum::Effects>& effects_;
  std::size_t width_;
  double bound_, unit_size_;
  std::vector<Neuron> neurons_;
  Features f_;
  std::size_t d_model_;
  std::vector<float> directions_;
  OneLayerWeights w_;
};

}  // namespace

Transformer constructed_model(const Problem& problem) { return Builder(problem).model(); }

}  // namespace deeptail::modes
