// The unembedding on its own: read from a user's file, or taken from a model and written for one.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/json.h"
#include "deeptail/model.h"

namespace deeptail {

namespace {

constexpr const char *kWu = "unembed.W_U", *kBu = "unembed.b_U", *kLnW = "ln_final.w", *kLnB = "ln_final.b",
                     *kEps = "ln_final.eps", *kNorm = "ln_final.norm";

std::vector<float> take_vector(const TensorMap& tensors, const std::string& path, const char* name,
                               const char* width_name, std::size_t width) {
  const Tensor& tensor = tensors.at(name);
  if (tensor.shape != std::vector<std::int64_t>{static_cast<std::int64_t>(width)})
    throw InputError("{}: tensor {}: expected shape [{}] ({} of {}), found {}", path, name, width, width_name,
                     kWu, shape_text(tensor.shape));
  return to_float(tensor);
}

bool is_rms(const std::string& path) {
  const auto metadata = read_metadata(path);
  const auto found = metadata.find(kNorm);
  if (found == metadata.end() || found->second == "layer") return false;
  if (found->second != "rms")
    throw InputError("{}: metadata {}: expected layer or rms, found \"{}\"", path, kNorm,
                     printable(found->second));
  return true;
}

float read_eps(const std::string& path) {
  const auto metadata = read_metadata(path);
  const auto found = metadata.find(kEps);
  if (found == metadata.end()) return LayerNorm{}.eps;
  const std::string& text = found->second;
  float eps = 0.0f;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), eps);
  if (error != std::errc() || stop != text.data() + text.size() || !std::isfinite(eps) || !(eps > 0.0f))
    throw InputError("{}: metadata {}: expected a positive number, found \"{}\"", path, kEps,
                     printable(text));
  return eps;
}

void check_names(const TensorMap& tensors, const std::string& path, bool rms) {
  if (!tensors.contains(kWu)) throw InputError("{}: tensor {} is missing", path, kWu);
  for (const auto& [name, tensor] : tensors)
    if (name != kWu && name != kBu && name != kLnW && name != kLnB)
      throw InputError("{}: tensor {} is not part of an unembedding; expected {}, and optionally {}, {}, {}",
                       path, printable(name), kWu, kBu, kLnW, kLnB);
  if (!rms && tensors.contains(kLnW) != tensors.contains(kLnB))
    throw InputError("{}: expected both {} and {} or neither, found only {}", path, kLnW, kLnB,
                     tensors.contains(kLnW) ? kLnW : kLnB);
  if (rms && (!tensors.contains(kLnW) || tensors.contains(kLnB)))
    throw InputError("{}: an RMS norm: expected {} without {}", path, kLnW, kLnB);
}

// All logits of a row, one by one: only for rows with numbers that are not finite or extremely large.
bool has_finite_logits(const Head& head, const float* row) {
  std::vector<float> out(round_up(head.d_vocab(), kPanel));
  gemm(1, {row, head.d_model()}, head.w_u, {out.data(), out.size()});
  return std::all_of(out.begin(), out.end(), [](float x) { return std::isfinite(x); });
}

// A logit sums d_model products and a bias. Where every number of a row is so small that even their absolute
// values cannot add up to the end of fp32, its logits are finite; comparing d_model numbers is nothing beside
// d_vocab columns. A NaN compares as not small.
void check_finite(const Head& head, std::size_t n, ConstRows normed) {
  const double d = static_cast<double>(head.d_model()), largest = static_cast<double>(head.w_u.largest());
  const double end = 0.5 * static_cast<double>(std::numeric_limits<float>::max());
  const auto limit = static_cast<float>(std::clamp((end - largest) / (d * largest), 0.0, end));
  for (std::size_t i = 0; i < n; ++i) {
    const float* row = normed.row(i);
    int small = 1;
    for (std::size_t k = 0; k < head.d_model(); ++k) small &= std::abs(row[k]) <= limit ? 1 : 0;
    if (small == 0 && !has_finite_logits(head, row))
      throw InputError(
          "{}: NaN or infinite logits for an input, though all weights are finite: its numbers grow beyond "
          "float32, so there is no token that it says",
          head.owner.empty() ? "unembedding" : head.owner);
  }
}

}  // namespace

Head Head::load(const std::string& path) {
  const TensorMap tensors = read_tensors(path);
  const bool rms = is_rms(path);
  check_names(tensors, path, rms);
  const Tensor& w_u = tensors.at(kWu);
  if (w_u.shape.size() != 2 || w_u.shape[0] < 1 || w_u.shape[1] < 2)
    throw InputError("{}: tensor {}: expected shape [d_model, d_vocab] with at least two tokens, found {}",
                     path, kWu, shape_text(w_u.shape));
  const auto d_model = static_cast<std::size_t>(w_u.shape[0]),
             d_vocab = static_cast<std::size_t>(w_u.shape[1]);
  std::vector<float> b_u;
  if (tensors.contains(kBu)) b_u = take_vector(tensors, path, kBu, "d_vocab", d_vocab);
  Head head;
  head.w_u = PackedMatrix(to_float(w_u), d_model, d_vocab, b_u);
  head.owner = path;
  if (tensors.contains(kLnW)) {
    const auto w = take_vector(tensors, path, kLnW, "d_model", d_model);
    std::vector<float> b;
    if (!rms) b = take_vector(tensors, path, kLnB, "d_model", d_model);
    head.ln_final = LayerNorm{{w.begin(), w.end()}, {b.begin(), b.end()}, read_eps(path), !rms};
  }
  return head;
}

void Head::normalise(std::size_t n, ConstRows resid, Rows out) const {
  if (ln_final)
    layernorm(n, resid, *ln_final, out);
  else
    for (std::size_t i = 0; i < n; ++i) std::copy_n(resid.row(i), d_model(), out.row(i));
  check_finite(*this, n, out);
}

void save_head(const std::string& path, const Head& head) {
  const auto d_model = static_cast<std::int64_t>(head.d_model()),
             d_vocab = static_cast<std::int64_t>(head.d_vocab());
  std::vector<float> w_u(head.d_model() * head.d_vocab());
  for (std::size_t k = 0; k < head.d_model(); ++k)
    for (std::size_t j = 0; j < head.d_vocab(); ++j) w_u[k * head.d_vocab() + j] = head.w_u.at(k, j);
  std::vector<NamedValues> tensors = {{kWu, {d_model, d_vocab}, w_u},
                                      {kBu, {d_vocab}, {head.w_u.bias(), head.d_vocab()}}};
  std::map<std::string, std::string> metadata;
  if (head.ln_final) {
    tensors.push_back({kLnW, {d_model}, head.ln_final->weight});
    if (head.ln_final->centred)
      tensors.push_back({kLnB, {d_model}, head.ln_final->bias});
    else
      metadata[kNorm] = "rms";
    metadata[kEps] = fmt::format("{}", head.ln_final->eps);
  }
  write_safetensors(path, tensors, metadata);
}

}  // namespace deeptail
