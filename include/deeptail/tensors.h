// Tensor files: safetensors, GGUF, PyTorch .pth/.pt, NumPy .npy. Readers know no language model.
//
// Files are read whole and not copied again: a Tensor points into its file's bytes and keeps them. Every
// malformed file gives an InputError that names the file, the offset or key, what was expected and what was
// found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/core.h"
#include "deeptail/enum_names.h"

namespace [[gnu::visibility("default")]] deeptail {

enum class DType {
  kF16,
  kBF16,
  kF32,
  kF64,
  kI32,
  kI64,
  kU8,
  kBool,
  // Blocks of quantised values, of GGUF files alone (src/tensors/blocks.h). They stay packed until asked for.
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K
};
template <>
struct EnumNames<DType> {
  static constexpr std::string_view kAll[] = {"float16", "bfloat16", "float32", "float64", "int32", "int64",
                                              "uint8",   "bool",     "Q4_0",    "Q4_1",    "Q5_0",  "Q5_1",
                                              "Q8_0",    "Q4_K",     "Q5_K",    "Q6_K"};
};

std::size_t size_of(DType dtype);  // of one value; not for blocks

// Row-major and contiguous; blocks lie along the last dimension.
struct Tensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const InputFile> file;  // keeps `bytes` alive

  std::size_t size() const;  // number of elements
};

// For messages: "[2, 3]", and "model.pth: tensor 'blocks.0.attn.W_Q'".
std::string shape_text(std::span<const std::int64_t> shape);
std::string describe(const Tensor& tensor);

using TensorMap = std::map<std::string, Tensor>;

// One tensor file, told apart by its content rather than its name (safetensors, the index of a sharded model,
// GGUF with the shards beside it, PyTorch zip, .npy); or a folder, in which it looks for model.safetensors, its
// index, pytorch_model.bin, its index, or a single .pth/.pt file, in this order. A single tensor (.npy, or a .pt
// that holds no dictionary) gets the
// name "".
TensorMap read_tensors(const std::string& path);

// The strings that a safetensors file keeps besides its tensors; empty for every other format.
std::map<std::string, std::string> read_metadata(const std::string& path);

// Values as fp32, whatever the file's dtype (booleans as 0 and 1). Throws InputError at the first NaN,
// infinity, or fp64 too large for fp32, naming its index.
std::vector<float> to_float(const Tensor& tensor);
// Integer and boolean tensors only.
std::vector<std::int64_t> to_int64(const Tensor& tensor);

// Writes float32 .npy v1 (little endian, C order). The file appears whole or not at all.
void write_npy(const std::string& path, std::span<const float> values, std::span<const std::int64_t> shape);

// The same as safetensors, one or more float32 tensors.
struct NamedValues {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};
void write_safetensors(const std::string& path, std::span<const NamedValues> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace deeptail
