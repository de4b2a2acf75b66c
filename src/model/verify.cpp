// A model against logits that were computed elsewhere.
//
// reference.json: {"inputs": [[id, ..], ..], "token_ids": [id, ..], "logits": [[..], ..], "argmax": [id, ..],
// "gap": [..]}: for every input the last position's logits at token_ids, its argmax, and the distance of the
// largest logit to the second.
#include <cmath>
#include <filesystem>

#include "core/json.h"
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
  Reference r;
  try {
    const Json json = parse_json(text, where);
    json.at("inputs").get_to(r.inputs);
    json.at("token_ids").get_to(r.token_ids);
    json.at("argmax").get_to(r.argmax);
    json.at("logits").get_to(r.logits);
    json.at("gap").get_to(r.gap);
  } catch (const Json::exception& e) {
    throw InputError("{}: {}", where, printable(e.what(), 200));
  }
  const std::size_t n = r.inputs.size();
  if (r.argmax.size() != n || r.logits.size() != n || r.gap.size() != n)
    throw InputError("{}: expected as many entries of argmax, logits and gap as of inputs ({})", where, n);
  for (const auto& row : r.logits)
    if (row.size() != r.token_ids.size())
      throw InputError("{}: expected {} logits per input, found {}", where, r.token_ids.size(), row.size());
  for (const TokenId id : r.token_ids)
    if (id < 0 || static_cast<std::size_t>(id) >= config.d_vocab)
      throw InputError("{}: token_ids holds {}, outside the vocabulary of {}", where, id, config.d_vocab);
  return r;
}

}  // namespace

std::optional<VerifyReport> verify_model(const Transformer& model, const std::string& folder,
                                         ThreadPool& pool) {
  const std::string path = (std::filesystem::path(folder) / "reference.json").string();
  if (!std::filesystem::exists(path)) return std::nullopt;
  const MappedFile file(path);
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
  if (report.n_logits > 0) report.mean_error = total_error / static_cast<double>(report.n_logits);
  return report;
}

}  // namespace deeptail
