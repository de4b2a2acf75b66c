#include "cli/output.h"

#include <fmt/format.h>

#include <cmath>

namespace deeptail::cli {

OrderedJson json_number(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

OrderedJson json_number(std::optional<double> value) {
  return value ? json_number(*value) : OrderedJson(nullptr);
}

std::string short_number(double value) { return fmt::format("{:.6g}", value); }

void print_json(const OrderedJson& document) { fmt::print("{}\n", json_text(document)); }

}  // namespace deeptail::cli
