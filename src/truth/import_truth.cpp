#include "core/sha256.h"
#include "deeptail/tensors.h"
#include "truth/truth.h"

namespace deeptail {

Truth import_truth(const std::string& path, const std::string& model, const std::string& dist) {
  const TensorMap tensors = read_tensors(path);
  if (tensors.size() != 1 || tensors.begin()->second.shape.size() != 1)
    throw InputError("{}: expected one tensor with a count for each token id, found {} tensors", path,
                     tensors.size());
  const std::vector<std::int64_t> values = to_int64(tensors.begin()->second);
  Truth truth{.model = model, .dist = dist};
  std::uint64_t samples = 0;
  for (std::size_t id = 0; id < values.size(); ++id) {
    if (values[id] < 0)
      throw InputError("{}: token id {} has the count {}: expected 0 or more", path, id, values[id]);
    if (values[id] == 0) continue;
    const auto count = static_cast<std::uint64_t>(values[id]);
    if (count > kMaxSamples - samples) throw InputError("{}: more than 2^62 counts in all", path);
    truth.counts[static_cast<TokenId>(id)] = count;
    samples += count;
  }
  if (samples == 0) throw InputError("{}: every count is 0", path);
  // The inputs' seed is not known; the file's own hash keeps it from being merged with itself.
  truth.ranges = {{.source = "import " + sha256_of_file(path), .seed = 0, .first = 0, .count = samples}};
  return truth;
}

}  // namespace deeptail
