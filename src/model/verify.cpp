// A model against logits that were computed elsewhere.
//
// reference.json: {"inputs": [[id, ..], ..], "token_ids": [id, ..], "logits": [[..], ..], "argmax": [id, ..],
// "gap": [..]}: for every input the last position's logits at token_ids, its argmax, and the distance of the
// largest logit to the second.
#include <cmath>
#include <filesystem>

#include "core/json_node.h"
#include "deeptail/model.h"

namespace deeptail {

namespace {

struct Reference {
  std::vector<std::vector<TokenId>> inputs;
  std::vector<TokenId> token_ids, argmax;
  std::vector<std::vector<double>> logits;  // [inputs, token_ids]
  std::vector<double> gap;
};

Reference parse_reference(std::string_view text, const std::string& where, const ModelConfig& config) {
  const Json document = parse_json(text, where);
  const JsonNode json(document, where);
  const JsonNode inputs = json.at("inputs"), logits = json.at("logits");
  Reference r;
  for (std::size_t i = 0; i < inputs.array_size(); ++i)
    r.inputs.push_back(inputs.element(i).token_ids(config.d_vocab));
  r.token_ids = json.at("token_ids").token_ids(config.d_vocab);
  r.argmax = json.at("argmax").token_ids(config.d_vocab);
  for (std::size_t i = 0; i < logits.array_size(); ++i) r.logits.push_back(logits.element(i).numbers());
  r.gap = json.at("gap").numbers();

  const std::size_t n = r.inputs.size();
  if (n == 0 || r.token_ids.empty())
    throw InputError(
        "{}: {} inputs and {} token_ids: expected at least one of each, there is nothing to compare", where,
        n, r.token_ids.size());
  if (r.argmax.size() != n || r.logits.size() != n || r.gap.size() != n)
    throw InputError("{}: expected as many entries of argmax, logits and gap as of inputs ({})", where, n);
  for (const auto& row : r.logits)
    if (row.size() != r.token_ids.size())
      throw InputError("{}: expected {} logits per input, found {}", where, r.token_ids.size(), row.size());
  return r;
}

}  // namespace

std::optional<VerifyReport> verify_model(const Transformer& model, const std::string& folder,
                                         ThreadPool& pool) {
  const std::string path = (std::filesystem::path(folder) / "reference.json").string();
  if (!std::filesystem::exists(path)) return std::nullopt;
  const InputFile file(path);
  const ModelConfig& c = model.config();
  const Reference r = parse_reference(file.text(), path, c);

  VerifyReport report;
  double total_error = 0.0;
  AlignedVector<float> resid(c.d_model), found(c.d_vocab);
  for (std::size_t i = 0; i < r.inputs.size(); ++i) {
    final_residuals(model, {r.inputs[i], r.inputs[i].size()}, pool, {resid.data(), c.d_model});
    logits(model.head(), 1, {resid.data(), c.d_model}, pool, {found.data(), c.d_vocab});
    for (std::size_t j = 0; j < r.token_ids.size(); ++j) {
      const double error = std::abs(found[static_cast<std::size_t>(r.token_ids[j])] - r.logits[i][j]);
      report.max_error = std::max(report.max_error, error);
      total_error += error;
      ++report.n_logits;
    }
    const bool equal = best_of(c.d_vocab, found.data()).index == static_cast<std::size_t>(r.argmax[i]);
    ++report.n_inputs;
    report.argmax_equal += equal;
    report.argmax_clear += r.gap[i] > 1e-3;
    report.argmax_clear_equal += equal && r.gap[i] > 1e-3;
  }
  report.mean_error = total_error / static_cast<double>(report.n_logits);
  return report;
}

}  // namespace deeptail
