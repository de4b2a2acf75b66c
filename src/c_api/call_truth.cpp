// Ground truth, and models of the hub.
#include <filesystem>
#include <optional>

#include "c_api/calls.h"
#include "core/write_file.h"
#include "deeptail/device.h"
#include "deeptail/hub.h"
#include "deeptail/truth.h"
#include "truth/truth.h"

namespace deeptail::c_api {

namespace {

std::string_view name_of(CountOutcome outcome) {
  return outcome == CountOutcome::kFinished  ? "finished"
         : outcome == CountOutcome::kStopped ? "stopped"
                                             : "already_finished";
}

// A file, or the name of one in the folders called truth: dt-1l-hex.
Truth truth_called(const std::string& name) {
  if (std::error_code error; std::filesystem::is_regular_file(name, error)) return read_truth(name);
  for (const std::string& file_name : {name, name + ".json"})
    if (const auto path = find_truth(file_name)) return read_truth(*path);
  throw InputError("{}: no such file, and no counts of this name in the folders called truth",
                   printable(name));
}

OrderedJson json_of(const Truth& truth) {
  OrderedJson counts = OrderedJson::object();
  for (const auto& [token, n] : truth.counts) append_field(counts, fmt::format("{}", token), n);
  return {{"model", truth.model},
          {"dist", truth.dist},
          {"model_sha256", truth.model_sha256},
          {"dist_sha256", truth.dist_sha256},
          {"samples", truth.samples()},
          {"ranges", deeptail::json_of(truth.ranges)},
          {"counts", counts}};
}

Device device_of(const JsonNode& arguments) {
  const std::string name = text_or(arguments, "device", "cpu");
  const auto device = value_named<Device>(name);
  if (!device) arguments.at("device").fail_expected("cpu or cuda");
  return *device;
}

}  // namespace

OrderedJson count_truth_file(const JsonNode& arguments, const Watch& watch) {
  expect_keys(arguments, {"model", "dist", "samples", "seed", "first", "out", "device", "near_tie",
                          "keep_inputs", "threads"});
  const std::string out = arguments.at("out").text();
  const std::uint64_t seed = count_or(arguments, "seed", 1);
  const LoadedModel model = load_model(arguments.at("model").text());
  const Distribution dist = load_distribution(arguments.at("dist").text(), model);
  std::optional<HitStore> hits;
  if (const std::uint64_t most = count_or(arguments, "keep_inputs", 0); most > 0)
    hits.emplace(model.config().d_vocab, most);
  HitStore* const kept = hits ? &*hits : nullptr;
  const bool on_cuda = device_of(arguments) == Device::kCuda;
  std::optional<double> near_tie;
  if (arguments.has("near_tie")) near_tie = arguments.at("near_tie").number();
  const TruthRequest request{.provenance = provenance_of(model, dist),
                             .source = on_cuda && near_tie == 0.0 ? kFp16Source : "deeptail",
                             .seed = seed,
                             .first = count_or(arguments, "first", 0),
                             .samples = arguments.at("samples").count(1, kMaxSamples),
                             .out = out,
                             .hits = kept};
  ThreadPool pool(threads_of(arguments));
  const CountInputs count = on_cuda ? count_on_cuda(model.transformer, dist, seed, near_tie, kept)
                                    : count_on_cpu(model.transformer, dist, seed, pool, kept);
  const CountOutcome outcome = count_truth(model.config().d_vocab, count, request, watch);
  const bool finished = outcome != CountOutcome::kStopped;
  OrderedJson result = finished ? json_of(read_truth(out)) : OrderedJson{{"counts", OrderedJson::object()}};
  result["outcome"] = name_of(outcome);
  result["out"] = out;
  return result;
}

OrderedJson read_truth_file(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"path"});
  return json_of(truth_called(arguments.at("path").text()));
}

OrderedJson compare_truth_files(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"a", "b"});
  const Truth a = truth_called(arguments.at("a").text()), b = truth_called(arguments.at("b").text());
  const TruthComparison c = compare_truth(a, b);
  OrderedJson unseen = OrderedJson::array();
  for (const TokenId token : c.unseen) unseen.push_back({{"id", token}, {"q", b.q(token)}});
  return {{"samples", {a.samples(), b.samples()}},
          {"tokens", c.n_tokens},
          {"max_z", c.max_z},
          {"max_z_token", c.max_z_token},
          {"chi_square", c.chi_square},
          {"degrees", c.degrees},
          {"p_value", c.p_value},
          {"unseen", unseen}};
}

OrderedJson merge_truth_files(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"paths", "out"});
  const Truth merged = merge_truth(texts_or_none(arguments, "paths"));
  if (arguments.has("out")) write_truth(arguments.at("out").text(), merged);
  return json_of(merged);
}

// Null where it was stopped; the next call goes on.
OrderedJson fetch_model(const JsonNode& arguments, const Watch& watch) {
  expect_keys(arguments, {"name", "refresh"});
  const std::string text = arguments.at("name").text();
  const auto alias = hub_alias(text);
  const HubName name = alias ? *alias : parse_hub_name(text);
  const auto fetched =
      fetch_from_hub(name, arguments.has("refresh") && arguments.at("refresh").boolean(), watch);
  if (!fetched) return nullptr;
  return {{"model", name.text()},
          {"commit", fetched->model.commit},
          {"path", fetched->model.path},
          {"files_fetched", fetched->files},
          {"bytes_fetched", fetched->bytes}};
}

}  // namespace deeptail::c_api
