// The fields that a table of temperatures and the results of `bench tune` have in common.
#pragma once

#include "core/json_node.h"
#include "deeptail/temperatures.h"

namespace deeptail {

TuneCell read_tune_cell(const JsonNode& row);
TuneResult read_tune_result(const JsonNode& row);  // without seconds

}  // namespace deeptail
