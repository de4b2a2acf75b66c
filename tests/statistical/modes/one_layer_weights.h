// Weights of a model of one layer that are written by hand, under TransformerLens's names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "deeptail/model.h"

namespace deeptail::modes {

class OneLayerWeights {
 public:
  // All zero, but for the norms' scales, which are 1. config: of one layer.
  explicit OneLayerWeights(ModelConfig config);

  const ModelConfig& config() const { return config_; }
  // Row-major; shapes are those of the constructor.
  std::vector<float>& operator[](const std::string& name) { return values_.at(name); }
  Transformer model() const;

 private:
  ModelConfig config_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::map<std::string, std::vector<float>> values_;
};

}  // namespace deeptail::modes
