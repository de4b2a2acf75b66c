// A transformer in plain loops and double precision, straight from the equations: what every family's engine is
// compared with. The flags make the mistakes that readers of these files are known for; each must show.
#pragma once

#include <cmath>
#include <vector>

#include "model/weights.h"

namespace deeptail::reference {

struct Mistakes {
  bool pairs_for_halves = false;     // turns neighbouring values together
  bool norm_after_rotation = false;  // q and k norms in the wrong order
  bool other_grouping = false;       // query head h on key head h mod G
  bool swapped_norms = false;        // the parallel mlp reads ln1
};

class Forward {
 public:
  Forward(const ModelConfig& config, const ModelWeights& weights, Mistakes mistakes = {})
      : c_(config), w_(weights), mistakes_(mistakes) {}

  using Row = std::vector<double>;

  // Residuals of all positions after all blocks, before the final norm.
  std::vector<Row> residuals(const std::vector<TokenId>& tokens) const {
    std::vector<Row> x;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      Row row(c_.d_model);
      for (std::size_t i = 0; i < c_.d_model; ++i) {
        row[i] = w_.w_e[static_cast<std::size_t>(tokens[t]) * c_.d_model + i];
        if (!w_.w_pos.empty()) row[i] += w_.w_pos[t * c_.d_model + i];
      }
      x.push_back(row);
    }
    for (std::size_t layer = 0; layer < c_.n_layers; ++layer) block(layer, x);
    return x;
  }

  Row logits(const std::vector<TokenId>& tokens) const {
    const Row y = norm(residuals(tokens).back(), w_.ln_final, c_.arch.norm == Architecture::Norm::kLayer);
    if (!c_.arch.tied_head) return times(y, w_.w_u);
    Row out(c_.d_vocab);
    for (std::size_t v = 0; v < c_.d_vocab; ++v)
      for (std::size_t i = 0; i < c_.d_model; ++i) out[v] += y[i] * w_.w_e[v * c_.d_model + i];
    return out;
  }

 private:
  static Row times(const Row& x, const Matrix& m) {
    Row out(m.out);
    for (std::size_t j = 0; j < m.out; ++j) {
      out[j] = m.b.empty() ? 0.0 : m.b[j];
      for (std::size_t i = 0; i < m.in; ++i) out[j] += x[i] * m.w[i * m.out + j];
    }
    return out;
  }

  Row norm(const Row& x, const NormWeights& w, bool centred) const {
    const auto n = static_cast<double>(x.size());
    double mean = 0.0, squares = 0.0;
    for (const double v : x) mean += centred ? v / n : 0.0;
    for (const double v : x) squares += (v - mean) * (v - mean) / n;
    Row out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      out[i] = (x[i] - mean) / std::sqrt(squares + static_cast<double>(c_.eps)) * w.w[i] +
               (w.b.empty() ? 0.0 : w.b[i]);
    return out;
  }

  void rotate(std::size_t t, double* head) const {
    const std::size_t half = c_.arch.frequencies.size();
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) * c_.arch.frequencies[i];
      double& a = head[mistakes_.pairs_for_halves ? 2 * i : i];
      double& b = head[mistakes_.pairs_for_halves ? 2 * i + 1 : i + half];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = turned;
    }
  }

  void finish_heads(std::size_t t, const NormWeights& w, Row& heads) const {
    for (std::size_t at = 0; at < heads.size(); at += c_.d_head) {
      if (mistakes_.norm_after_rotation) rotate(t, heads.data() + at);
      if (c_.arch.qk_norm) {
        const auto first = heads.begin() + static_cast<std::ptrdiff_t>(at);
        const Row normed = norm(Row(first, first + static_cast<std::ptrdiff_t>(c_.d_head)), w, false);
        std::copy(normed.begin(), normed.end(), first);
      }
      if (!mistakes_.norm_after_rotation) rotate(t, heads.data() + at);
    }
  }

  // Row t of softmax(scale q k^T) v, all heads.
  Row attend(std::size_t t, double scale, const Row& q, const std::vector<Row>& k,
             const std::vector<Row>& v) const {
    Row z(c_.d_attn());
    for (std::size_t h = 0; h < c_.n_heads; ++h) {
      const std::size_t g = mistakes_.other_grouping ? h % c_.n_kv_heads() : h / c_.arch.kv_groups;
      Row p(t + 1);
      double top = -INFINITY, total = 0.0;
      for (std::size_t u = 0; u <= t; ++u) {
        for (std::size_t i = 0; i < c_.d_head; ++i)
          p[u] += scale * q[h * c_.d_head + i] * k[u][g * c_.d_head + i];
        top = std::max(top, p[u]);
      }
      for (double& value : p) total += value = std::exp(value - top);
      for (std::size_t u = 0; u <= t; ++u)
        for (std::size_t i = 0; i < c_.d_head; ++i)
          z[h * c_.d_head + i] += p[u] / total * v[u][g * c_.d_head + i];
    }
    return z;
  }

  Row mlp(const BlockWeights& b, const Row& y) const {
    Row hidden = times(y, b.w_in);
    const Row gate = c_.arch.mlp == Architecture::Mlp::kSwiGlu ? times(y, b.w_gate) : Row();
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      const double x = hidden[i];
      if (c_.arch.mlp == Architecture::Mlp::kSwiGlu)
        hidden[i] = gate[i] / (1.0 + std::exp(-gate[i])) * x;
      else if (c_.arch.mlp == Architecture::Mlp::kGelu)
        hidden[i] = 0.5 * x * std::erfc(-x / std::sqrt(2.0));
      else
        hidden[i] = 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    }
    return times(hidden, b.w_out);
  }

  void block(std::size_t layer, std::vector<Row>& x) const {
    const BlockWeights& b = w_.blocks[layer];
    const bool centred = c_.arch.norm == Architecture::Norm::kLayer;
    const bool parallel = c_.arch.residual == Architecture::Residual::kParallel;
    std::vector<Row> q, k, v;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row y = norm(x[t], b.ln1, centred);
      q.push_back(times(y, b.w_q)), k.push_back(times(y, b.w_k)), v.push_back(times(y, b.w_v));
      finish_heads(t, b.q_norm, q[t]);
      finish_heads(t, b.k_norm, k[t]);
    }
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row before = x[t];
      add(times(attend(t, c_.attention_scale(layer), q[t], k, v), b.w_o), x[t]);
      add(mlp(b, norm(parallel ? before : x[t], mistakes_.swapped_norms ? b.ln1 : b.ln2, centred)), x[t]);
    }
  }

  static void add(const Row& from, Row& to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }

  const ModelConfig& c_;
  const ModelWeights& w_;
  Mistakes mistakes_;
};

}  // namespace deeptail::reference
