// Losses on arrays.
#include <array>

#include "c_api/guard.h"
#include "core/json_node.h"
#include "deeptail/loss.h"

namespace deeptail::c_api {

namespace {

double loss_parameter(const JsonNode& node, const char* key, double otherwise) {
  return node.has(key) ? node.at(key).number() : otherwise;
}

SpbParameters read_spb(std::string_view text) {
  const Json document = parse_json(text.empty() ? "{}" : text, "parameters");
  const JsonNode node(document, "parameters");
  node.expect_object();
  const SpbParameters usual;
  const SpbParameters out{.alpha = loss_parameter(node, "alpha", usual.alpha),
                          .gamma = loss_parameter(node, "gamma", usual.gamma),
                          .epsilon = loss_parameter(node, "epsilon", usual.epsilon)};
  out.validate();
  return out;
}

// As the readers of pairs ask it of files.
void check_pairs(std::span<const double> truth, std::span<const double> estimate) {
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!(truth[i] > 0.0 && truth[i] < 1.0))
      throw InputError("truth [{}]: expected a number above 0 and below 1, found {}", i, truth[i]);
    if (!(estimate[i] >= 0.0 && estimate[i] <= 1.0))
      throw InputError("estimate [{}]: expected a number from 0 to 1, found {}", i, estimate[i]);
  }
}

void run_losses(std::string_view name, std::string_view parameters, std::span<const double> q,
                std::span<const double> p, std::span<double> out) {
  check_pairs(q, p);
  if (name == "spb") return spb_weighted(read_spb(parameters), q, p, out);
  if (name == "spb_pointwise") return spb_pointwise(read_spb(parameters), q, p, out);
  struct Plain {
    std::string_view name;
    double (*loss)(double q, double p);
  };
  constexpr std::array kPlain = {Plain{"squared", squared_error}, Plain{"log_squared", log_squared_error},
                                 Plain{"itakura_saito", itakura_saito}};
  for (const Plain& plain : kPlain) {
    if (plain.name != name) continue;
    for (std::size_t i = 0; i < q.size(); ++i) out[i] = plain.loss(q[i], p[i]);
    return;
  }
  throw InputError("loss: expected spb, spb_pointwise, squared, log_squared or itakura_saito, found \"{}\"",
                   printable(name));
}

}  // namespace

}  // namespace deeptail::c_api

using namespace deeptail::c_api;

extern "C" dt_status dt_losses(const char* name, const char* parameters, const double* truth,
                               const double* estimate, size_t n, double* out) {
  return guarded([&] {
    run_losses(given_text(name, "loss"), parameters == nullptr ? "" : parameters, {truth, n}, {estimate, n},
               {out, n});
  });
}
