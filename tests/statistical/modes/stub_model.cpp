#include "stub_model.h"

#include "one_layer_weights.h"

namespace deeptail::modes {

Transformer stub_model() {
  return OneLayerWeights({.model_name = "stub",
                          .n_layers = 1,
                          .d_model = 4,
                          .n_heads = 1,
                          .d_head = 1,
                          .d_mlp = 1,
                          .n_ctx = 40,
                          .d_vocab = 4096,
                          .eps = 1e-5f,
                          .tokenizer_file = ""})
      .model();
}

}  // namespace deeptail::modes
