#include <algorithm>
#include <filesystem>

#include "deeptail/tensors.h"
#include "tensors/gguf.h"
#include "tensors/npy.h"
#include "tensors/safetensors.h"
#include "tensors/sharded.h"
#include "tensors/sniff.h"
#include "tensors/torch_file.h"

namespace deeptail {

namespace {

namespace fs = std::filesystem;

// The one .pth or .pt file of a folder.
std::string find_torch_file(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto extension = entry.path().extension();
    if (extension == ".pth" || extension == ".pt") found.push_back(entry.path().string());
  }
  if (error) throw InputError("{}: cannot list this folder: {}", folder, error.message());
  if (found.size() == 1) return found.front();
  std::sort(found.begin(), found.end());
  if (found.empty())
    throw InputError(
        "{}: expected model.safetensors, model.safetensors.index.json, pytorch_model.bin, or one .pth or .pt "
        "file in this folder, found none of them",
        folder);
  throw InputError(
      "{}: expected one .pth or .pt file in this folder, found {}, such as {} and {}; name one of them",
      folder, found.size(), found[0], found[1]);
}

std::string find_in_folder(const std::string& folder) {
  std::error_code error;
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"})
    if (const auto path = fs::path(folder) / name; fs::exists(path, error)) return path.string();
  return find_torch_file(folder);
}

TensorMap parse(const std::shared_ptr<const InputFile>& whole) {
  const InputFile& file = *whole;
  switch (sniff(file)) {
    case Format::kSafetensors:
      return parse_safetensors(file.bytes(), file.path());
    case Format::kSafetensorsIndex:
      return read_sharded(file.text(), file.path());
    case Format::kGguf:
      return read_gguf(whole).tensors;
    case Format::kTorchZip:
      return parse_torch_zip(file.bytes(), file.path());
    case Format::kNpy:
      return {{"", parse_npy(file.bytes(), file.path())}};
  }
  throw std::logic_error("parse: not a Format");
}

}  // namespace

TensorMap read_tensors(const std::string& path) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  const auto file = std::make_shared<const InputFile>(is_folder ? find_in_folder(path) : path);
  TensorMap tensors = parse(file);
  for (auto& [name, tensor] : tensors)
    if (!tensor.file) tensor.file = file;  // shards are their own files
  return tensors;
}

std::map<std::string, std::string> read_metadata(const std::string& path) {
  std::error_code error;
  const InputFile file(fs::is_directory(path, error) ? find_in_folder(path) : path);
  if (sniff(file) != Format::kSafetensors) return {};
  return parse_safetensors_metadata(file.bytes(), file.path());
}

}  // namespace deeptail
