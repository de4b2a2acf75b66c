// A model and an input distribution as the plain arrays that the kernels take.
#pragma once

#include "compute_cuda/dense.h"
#include "deeptail/inputs.h"
#include "deeptail/model.h"

namespace deeptail::cuda {

DenseModel dense_model(const Transformer& model);
DenseInputs dense_inputs(const Distribution& dist);

}  // namespace deeptail::cuda
