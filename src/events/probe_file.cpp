// The file form deeptail-probe-1.
#include <cmath>
#include <filesystem>

#include "core/json_node.h"
#include "deeptail/tensors.h"
#include "events/probe.h"

namespace deeptail {

namespace {

constexpr std::string_view kProbeFormat = "deeptail-probe-1";
constexpr std::size_t kMostLayers = 1024, kLongestDirection = 1 << 20, kLastPosition = 1 << 20;

std::vector<float> direction_of_file(const JsonNode& node, std::string_view folder) {
  const std::filesystem::path name = node.text();
  if (folder.empty() || name.filename() != name) node.fail_expected("the name of a file beside this one");
  const TensorMap tensors = read_tensors((std::filesystem::path(folder) / name).string());
  if (tensors.size() != 1)
    throw InputError("{}: holds {} tensors: expected one, the direction", printable(name.string()),
                     tensors.size());
  const Tensor& tensor = tensors.begin()->second;
  if (tensor.shape.size() != 1)
    throw InputError("{}: expected shape [d_model], found {}", describe(tensor), shape_text(tensor.shape));
  return to_float(tensor);
}

std::vector<float> direction_of(const JsonNode& node, std::string_view folder) {
  if (node.value().is_string()) return direction_of_file(node, folder);
  std::vector<float> direction;
  for (const double value : node.numbers()) direction.push_back(static_cast<float>(value));
  return direction;
}

void take_position(const JsonNode& node, ProbeFile& out) {
  if (node.value().is_number()) {
    out.place = ProbeFile::Place::kIndex;
    out.index = node.count(0, kLastPosition);
  } else if (node.text() == "prompt") {
    out.place = ProbeFile::Place::kPrompt;
  } else if (node.text() == "continuation") {
    out.place = ProbeFile::Place::kContinuation;
  } else {
    node.fail_expected("\"prompt\", \"continuation\" or a position");
  }
}

}  // namespace

ProbeFile parse_probe(std::string_view text, std::string_view where, std::string_view folder) {
  const Json document = parse_json(text, where);
  const JsonNode json(document, where), format = json.at("format");
  if (format.text() != kProbeFormat) format.fail_expected(fmt::format("\"{}\"", kProbeFormat));
  ProbeFile out{.layer = json.at("layer").count(0, kMostLayers - 1)};
  take_position(json.at("position"), out);
  if (json.has("bias")) out.bias = json.at("bias").number();
  const JsonNode direction = json.at("direction");
  out.direction = direction_of(direction, folder);
  if (out.direction.empty() || out.direction.size() > kLongestDirection)
    direction.fail_expected("numbers, one for each coordinate of the residual stream");
  bool zero = true;
  for (const float value : out.direction) {
    if (!std::isfinite(value)) direction.fail_expected("numbers that float32 can hold");
    zero = zero && value == 0.0f;
  }
  if (zero) direction.fail_expected("a direction that is not 0");
  out.name = where;
  return out;
}

ProbeFile read_probe(const std::string& path) {
  const InputFile file(path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  ProbeFile out = parse_probe(file.text(), path, folder.empty() ? "." : folder.string());
  out.name = std::filesystem::path(path).filename().string();
  return out;
}

}  // namespace deeptail
