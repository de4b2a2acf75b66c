// The first-layer table of a distribution, when it is small enough to pay.
#pragma once

#include <memory>

#include "deeptail/inputs.h"
#include "deeptail/model.h"

namespace deeptail {

std::unique_ptr<const FirstLayerTable> first_layer_table(const Transformer& model, const Distribution& dist,
                                                         ThreadPool& pool);

}  // namespace deeptail
