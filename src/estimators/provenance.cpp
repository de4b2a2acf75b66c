#include <set>

#include "core/sha256.h"
#include "deeptail/estimators.h"

namespace deeptail {

std::string weights_sha256(const std::string& folder) {
  const TensorMap tensors = read_tensors(folder);
  std::set<std::string> paths;
  for (const auto& [name, tensor] : tensors) paths.insert(tensor.file->path());
  Sha256 hash;
  for (const std::string& path : paths) hash.add(MappedFile(path).bytes());
  return hash.hex();
}

double forward_flops(const ModelConfig& c, std::size_t length) {
  const double n = static_cast<double>(length), d = static_cast<double>(c.d_model);
  const double d_attn = static_cast<double>(c.d_attn()), d_mlp = static_cast<double>(c.d_mlp);
  const double projections = 2.0 * n * (4.0 * d * d_attn + 2.0 * d * d_mlp);
  const double attention = 2.0 * n * (n + 1.0) * d_attn;  // scores and sums over the positions up to each one
  return static_cast<double>(c.n_layers) * (projections + attention) +
         2.0 * d * static_cast<double>(c.d_vocab);
}

}  // namespace deeptail
