// deeptail model list and inspect.
#pragma once

#include <string>

#include "core/json.h"
#include "deeptail/model.h"

namespace deeptail::cli {

void print_models(bool json);
void inspect_model(const std::string& name, bool json);

OrderedJson sizes_json(const ModelConfig& config);

}  // namespace deeptail::cli
