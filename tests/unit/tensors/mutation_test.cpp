// Every truncation and every single-byte change of small valid files is either read or refused with an
// InputError. Memory errors show under the address sanitizer.
#include <gtest/gtest.h>

#include <functional>

#include "build_files.h"
#include "tensors/gguf.h"
#include "tensors/npy.h"
#include "tensors/safetensors.h"
#include "tensors/torch_file.h"

namespace deeptail {
namespace {

using namespace testing;

using Parser = std::function<TensorMap(std::span<const std::byte>)>;

// The bytes live in a vector of exactly their size, so that reading past the end is seen.
void read_or_refuse(const Parser& parser, std::span<const std::byte> bytes) {
  const std::vector<std::byte> copy(bytes.begin(), bytes.end());
  try {
    for (const auto& [name, tensor] : parser(copy)) to_float(tensor);
  } catch (const InputError&) {
  }
}

void mutate(const std::string& path, const Parser& parser) {
  std::string file = read_whole(path);
  for (std::size_t size = 0; size < file.size(); ++size) read_or_refuse(parser, as_bytes(file).first(size));
  for (std::size_t at = 0; at < file.size(); ++at) {
    const char original = file[at];
    for (const int change : {0x01, 0x80, 0xff}) {
      file[at] = static_cast<char>(original ^ change);
      read_or_refuse(parser, as_bytes(file));
    }
    file[at] = original;
  }
}

TEST(Mutation, Safetensors) {
  mutate(data_path("safetensors/every_dtype.safetensors"),
         [](auto bytes) { return parse_safetensors(bytes, "f"); });
}

TEST(Mutation, TorchZip) {
  for (const char* name : {"torch-1/state_dict.pth", "torch-1/protocol4.pth", "torch-2/parameter.pth"})
    mutate(data_path(name), [](auto bytes) { return parse_torch_zip(bytes, "f"); });
}

TEST(Mutation, Npy) {
  for (const char* name : {"numpy/f4.npy", "numpy/version2.npy"})
    mutate(data_path(name), [](auto bytes) { return TensorMap{{"", parse_npy(bytes, "f")}}; });
}

TEST(Mutation, Gguf) {
  mutate(data_path("gguf/small.gguf"), [](auto bytes) { return parse_gguf(bytes, "f").tensors; });
}

// A shorter file is never read as if it were whole.
TEST(Mutation, EveryTruncationIsNoticed) {
  const std::string safetensors = read_whole(data_path("safetensors/every_dtype.safetensors"));
  const std::string torch = read_whole(data_path("torch-2/state_dict.pth"));
  const std::string npy = read_whole(data_path("numpy/f4.npy"));
  const std::string gguf = read_whole(data_path("gguf/small.gguf"));
  for (std::size_t n = 0; n < gguf.size(); ++n)
    EXPECT_THROW(parse_gguf(as_bytes(gguf).first(n), "f"), InputError) << n;
  for (std::size_t n = 0; n < safetensors.size(); ++n)
    EXPECT_THROW(parse_safetensors(as_bytes(safetensors).first(n), "f"), InputError) << n;
  for (std::size_t n = 0; n < torch.size(); ++n)
    EXPECT_THROW(parse_torch_zip(as_bytes(torch).first(n), "f"), InputError) << n;
  for (std::size_t n = 0; n < npy.size(); ++n)
    EXPECT_THROW(parse_npy(as_bytes(npy).first(n), "f"), InputError) << n;
}

}  // namespace
}  // namespace deeptail
