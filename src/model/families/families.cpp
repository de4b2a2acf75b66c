// The families, as rows.
#include <algorithm>
#include <stdexcept>

#include "model/families/family.h"
#include "model/families/rows.h"

namespace deeptail {

namespace {

const std::vector<Family>& families() {
  static const std::vector<Family> rows = [] {
    std::vector<Family> all = {
        transformer_lens_family(), gpt2_family(),  gpt_neo_family(), gpt_neox_family(), llama_family(),
        mistral_family(),          qwen2_family(), qwen3_family()};
    for (Family& family : gguf_families()) all.push_back(std::move(family));
    return all;
  }();
  return rows;
}

}  // namespace

const Family* find_family(std::string_view name) {
  const auto found = std::ranges::find(families(), name, &Family::name);
  return found == families().end() ? nullptr : &*found;
}

const Family& family_of(const ModelConfig& config) {
  const Family* family = find_family(config.family);
  if (family == nullptr) throw std::logic_error("no family " + config.family);
  return *family;
}

std::vector<std::string_view> family_names() {
  std::vector<std::string_view> names;
  for (const Family& family : families())
    if (family.read != nullptr) names.push_back(family.name);
  return names;
}

ModelWeights take_weights(const ModelConfig& config, TensorTaker& tensors) {
  const Family& family = family_of(config);
  ModelWeights out{family.take_ends(config, tensors)};
  for (std::size_t i = 0; i < config.n_layers; ++i)
    out.blocks.push_back(family.take_block(config, tensors, i));
  tensors.refuse_others(family.buffers);
  return out;
}

}  // namespace deeptail
