// A model and an input distribution as the plain arrays that the kernels take.
#pragma once

#include "compute_cuda/dense.h"
#include "deeptail/inputs.h"
#include "deeptail/model.h"
#include "inputs/planted_tables.h"

namespace deeptail::cuda {

DenseModel dense_model(const Transformer& model);
DenseInputs dense_inputs(const Distribution& dist);
// tables: like those that the inputs were made from, with other chances. plants: null: none.
DenseBase dense_base(const Distribution& tables, const PlantList* plants, const DenseInputs& inputs);

}  // namespace deeptail::cuda
