#include "cli/estimate_forecast.h"

#include "cli/pass_rate.h"
#include "deeptail/device.h"
#include "deeptail/law.h"

namespace deeptail::cli {

std::string forecast_text(const Method& method, const Question& question, std::size_t n_questions,
                          ThreadPool& pool) {
  constexpr double kLongFlops = 2e13;  // two minutes or so on two cores
  if (method.device != Device::kCpu || (method.unit != "forwards" && method.unit != "inputs") || !method.work)
    return "";
  if (question.model == nullptr || question.law == nullptr) return "";
  const auto work = static_cast<double>(method.work(question) * n_questions);
  const std::size_t length = question.law->facts().max_length;
  const double flops = forward_flops(question.model->config(), length);
  if (work * flops < kLongFlops) return "";
  const double rate = passes_per_second(*question.model, length, pool);
  return fmt::format(
      "{:.2g} forward passes of {} tokens, {:.2g} flops each, take about {} here: {:.3g} passes a second on "
      "{} threads, "
      "measured now",
      work, length, flops, duration_text(work / rate), rate, pool.size());
}

}  // namespace deeptail::cli
