// Runs made up by hand.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "deeptail/runs.h"

namespace deeptail {

inline Run small_run() {
  Run run;
  run.header.suite_name = "made-up";
  run.header.version = "0";
  run.header.models = {{.name = "m", .n_layers = 1}};
  run.header.distributions = {{.name = "d"}};
  return run;
}

// An estimate of p for a target that was counted `count` times in 1000 samples.
inline RunItem estimate(TokenId target, std::uint64_t count, double p, const std::string& method = "qld",
                        const std::string& variant = "") {
  RunItem item{.model = "m",
               .dist = "d",
               .target_text = "t",
               .method = method,
               .variant = variant.empty() ? method : variant,
               .target = {target}};
  item.truth_count = count;
  item.truth_samples = 1000;
  item.log_p = std::log(p);
  item.log_low = item.log_p - 0.5;
  item.log_high = p > 0.0 ? item.log_p + 0.5 : std::log(0.01);
  item.status = "ok";
  item.cost.forward_equivalents = 100.0;
  item.cost.seconds = 2.0;
  return item;
}

inline RunItem without_truth(RunItem item) {
  item.truth_count = item.truth_samples = 0;
  return item;
}

}  // namespace deeptail
