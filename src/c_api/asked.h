// A question as it comes in: handles, events and settings as JSON text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "deeptail/methods.h"

namespace deeptail::c_api {

using Events = std::vector<std::unique_ptr<Event>>;

// {"method": "mc", "budget": 1e5, "seed": 3, ...}
struct AskedSettings {
  std::string method = {};  // "": that of the events
  std::uint64_t seed = 1;
  std::size_t threads = 0;
  std::optional<std::uint64_t> calibration_seed = {};
  std::string model_name = {}, dist_name = {};  // of activations that a caller brings
  std::vector<Setting> given = {};              // of methods

  Method make(const Events& events);
  // What the method has no use for.
  void warn_of_unused(const Method& method, Estimate& estimate) const;
};
AskedSettings read_settings(std::string_view json);

Events read_events(const dt_question& question);
const Head& head_of(const dt_question& question);
const std::optional<NamedTokenizer>& tokenizer_of(const dt_question& question);

// One line of JSON with the texts of its tokens.
std::string estimate_line(Estimate estimate, const std::optional<NamedTokenizer>& tokenizer);

}  // namespace deeptail::c_api
