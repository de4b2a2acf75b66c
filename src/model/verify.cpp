// A model against logits that were computed elsewhere.
//
// reference.json: {"inputs": [[id, ..], ..], "token_ids": [id, ..], "logits": [[..], ..], "argmax": [id, ..],
// "gap": [..]}: for every input the last position's logits at token_ids, its argmax, and the distance of the
// largest logit to the second.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "core/json_node.h"
#include "core/random.h"
#include "deeptail/model.h"
#include "tensors/gguf.h"

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

std::string reference_path(const std::string& folder) {
  if (is_gguf_file(folder)) return std::filesystem::path(folder).replace_extension("reference.json").string();
  return (std::filesystem::path(folder) / "reference.json").string();
}

std::string make_reference(const Transformer& model, ThreadPool& pool) {
  constexpr std::size_t kInputs = 16, kLongest = 32, kTokens = 64;
  constexpr RngKey kKey{.seed = 1, .stream = Stream::kInputs};
  const ModelConfig& c = model.config();
  Json out = {{"inputs", Json::array()}, {"token_ids", Json::array()}, {"logits", Json::array()},
              {"argmax", Json::array()}, {"gap", Json::array()}};
  const std::size_t n_tokens = std::min(kTokens, c.d_vocab);
  for (std::size_t k = 0; k < n_tokens; ++k) out["token_ids"].push_back(k * c.d_vocab / n_tokens);
  AlignedVector<float> resid(c.d_model), all(c.d_vocab);
  for (std::size_t i = 0; i < kInputs; ++i) {
    std::vector<TokenId> tokens(std::min(c.n_ctx, 1 + i * kLongest / kInputs));
    for (std::size_t p = 0; p < tokens.size(); ++p)
      tokens[p] = static_cast<TokenId>(uniform64(kKey, i, static_cast<std::uint32_t>(p)) % c.d_vocab);
    final_residuals(model, {tokens, tokens.size()}, pool, {resid.data(), c.d_model});
    logits(model.head(), 1, {resid.data(), c.d_model}, pool, {all.data(), c.d_vocab});
    const std::size_t said = best_of(c.d_vocab, all.data()).index;
    std::vector<float> row;
    for (const Json& id : out["token_ids"]) row.push_back(all[id.get<std::size_t>()]);
    const float best = std::exchange(all[said], -std::numeric_limits<float>::infinity());
    out["gap"].push_back(best - *std::max_element(all.begin(), all.end()));
    out["inputs"].push_back(tokens), out["argmax"].push_back(said), out["logits"].push_back(row);
  }
  return json_text(out) + "\n";
}

std::optional<VerifyReport> verify_model(const Transformer& model, const std::string& path, ThreadPool& pool) {
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
