// Files written by PyTorch 1.13 and 2.11, NumPy and safetensors themselves
// (tests/reference/make_tensor_fixtures.py).
#include <gtest/gtest.h>

#include "build_files.h"

namespace deeptail {
namespace {

using namespace testing;

// Element i of every fixture is i - 1; unsigned i; booleans i % 2.
void expect_ramp(const Tensor& tensor, DType dtype, const std::vector<std::int64_t>& shape) {
  EXPECT_EQ(tensor.dtype, dtype) << tensor.name;
  EXPECT_EQ(tensor.shape, shape) << tensor.name;
  const std::vector<float> values = to_float(tensor);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int expected = dtype == DType::kBool ? static_cast<int>(i % 2)
                         : dtype == DType::kU8 ? static_cast<int>(i)
                                               : static_cast<int>(i) - 1;
    EXPECT_EQ(values[i], static_cast<float>(expected)) << tensor.name << " " << i;
  }
}

void expect_every_dtype(const TensorMap& tensors) {
  ASSERT_EQ(tensors.size(), 10u);
  expect_ramp(tensors.at("f16"), DType::kF16, {2, 3});
  expect_ramp(tensors.at("bf16"), DType::kBF16, {2, 3});
  expect_ramp(tensors.at("f32"), DType::kF32, {2, 3});
  expect_ramp(tensors.at("f64"), DType::kF64, {2, 3});
  expect_ramp(tensors.at("i32"), DType::kI32, {2, 3});
  expect_ramp(tensors.at("i64"), DType::kI64, {2, 3});
  expect_ramp(tensors.at("u8"), DType::kU8, {2, 3});
  expect_ramp(tensors.at("bool"), DType::kBool, {2, 3});
  expect_ramp(tensors.at("scalar"), DType::kF32, {});
  expect_ramp(tensors.at("empty"), DType::kF32, {0, 3});
}

TEST(ReadTensors, Safetensors) {
  expect_every_dtype(read_tensors(data_path("safetensors/every_dtype.safetensors")));
}

class ReadTorch : public ::testing::TestWithParam<std::string> {
 protected:
  std::string path(const std::string& name) const { return data_path(GetParam() + "/" + name); }
};

TEST_P(ReadTorch, StateDicts) {
  expect_every_dtype(read_tensors(path("every_dtype.pth")));
  for (const char* name : {"state_dict.pth", "nested.pth"}) {
    const TensorMap tensors = read_tensors(path(name));
    ASSERT_EQ(tensors.size(), 2u);
    expect_ramp(tensors.at("W"), DType::kF32, {2, 3});
    expect_ramp(tensors.at("mask"), DType::kBool, {2, 2});
  }
  for (const char* name : {"parameter.pth", "protocol4.pth", "protocol5.pth"})
    expect_ramp(read_tensors(path(name)).at("W"), DType::kF32, {2, 3});
}

TEST_P(ReadTorch, SingleTensor) {
  const TensorMap tensors = read_tensors(path("single_int64.pt"));
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_EQ(to_int64(tensors.at("")), (std::vector<std::int64_t>{-1, 0, 1, 2, 3}));
}

TEST_P(ReadTorch, SharedStorage) {
  const TensorMap tensors = read_tensors(path("shared_storage.pth"));
  expect_ramp(tensors.at("whole"), DType::kF32, {4, 3});
  EXPECT_EQ(to_float(tensors.at("rows")), (std::vector<float>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(tensors.at("rows").bytes.data(), tensors.at("whole").bytes.data() + 12);
}

TEST_P(ReadTorch, Refused) {
  const auto refused = [&](const std::string& name, const std::vector<std::string>& message) {
    auto fragments = message;
    fragments.push_back(name);
    expect_refused([&] { read_tensors(path(name)); }, fragments);
  };
  refused("transposed.pth", {"tensor 'W'", "shape [3, 2] with strides [1, 3] is not contiguous"});
  refused("runs_code.pth", {"asks for 'posix.system'", "not allowed"});
  refused("whole_model.pth", {"asks for '__main__.TwoWeights'", "state_dict()"});
  refused("complex.pth", {"asks for 'torch.ComplexFloatStorage'"});
  refused("legacy.pth", {"old PyTorch file", "torch.save(..., _use_new_zipfile_serialization=True)"});
}

INSTANTIATE_TEST_SUITE_P(Versions, ReadTorch, ::testing::Values("torch-1", "torch-2"),
                         [](const auto& param_info) { return "Version" + param_info.param.substr(6); });

TEST(ReadTensors, Npy) {
  const auto read = [](const std::string& name) { return read_tensors(data_path("numpy/" + name)).at(""); };
  expect_ramp(read("f2.npy"), DType::kF16, {2, 3});
  expect_ramp(read("f4.npy"), DType::kF32, {2, 3});
  expect_ramp(read("f8.npy"), DType::kF64, {2, 3});
  expect_ramp(read("i4.npy"), DType::kI32, {2, 3});
  expect_ramp(read("i8.npy"), DType::kI64, {2, 3});
  expect_ramp(read("u1.npy"), DType::kU8, {2, 3});
  expect_ramp(read("b1.npy"), DType::kBool, {2, 3});
  expect_ramp(read("version2.npy"), DType::kF32, {2, 3});
  expect_ramp(read("version3.npy"), DType::kF32, {2, 3});
  expect_ramp(read("scalar.npy"), DType::kF32, {});
  expect_ramp(read("empty.npy"), DType::kF32, {0, 3});
  expect_refused([&] { read("fortran.npy"); }, {"fortran.npy", "column-major"});
  expect_refused([&] { read("big_endian.npy"); }, {"big_endian.npy", "'>f4' is big endian"});
  expect_refused([&] { read("structured.npy"); }, {"structured.npy", "structured arrays are not read"});
  expect_refused([&] { read("archive.npz"); }, {"archive.npz", ".npz file?"});
}

TEST(ReadTensors, RefusesWhatIsNoTensorFile) {
  const TempFolder folder;
  const auto refused = [&](const std::string& name, const std::string& bytes,
                           const std::vector<std::string>& message) {
    const auto path = folder.write(name, bytes);
    expect_refused([&] { read_tensors(path); }, message);
  };
  refused("a.pth", "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3706368\n",
          {"a.pth: is a git-LFS pointer of", "size 3706368", "git lfs pull"});
  refused("a.pth", "", {"a.pth: is empty"});
  refused("a.pth", "<!DOCTYPE html>", {"a.pth: expected safetensors", "starts with '<!DOCTYPE html>'"});
  refused("a.pth", std::string(257, 'x') + "ustar" + std::string(250, '\0'),
          {"a.pth", "a tar archive", "re-save"});
  refused("a.safetensors", "abc", {"a.safetensors: truncated at offset 0"});
  refused("a.pth", "PK\x03\x04", {"a.pth: truncated"});
  expect_refused([&] { read_tensors(folder.path("absent")); }, {"absent: cannot open"});
}

TEST(ReadTensors, ContentDecidesNotTheName) {
  const TempFolder folder;
  const auto path = folder.write("misnamed.safetensors", read_whole(data_path("torch-1/single_int64.pt")));
  EXPECT_EQ(read_tensors(path).at("").dtype, DType::kI64);
  // A header of 123 bytes makes the file start with '{', as JSON does.
  std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  header.resize(123, ' ');
  EXPECT_EQ(read_tensors(folder.write("x", safetensors_file(header, "1"))).size(), 1u);
}

TEST(ReadTensors, Folders) {
  const TempFolder folder;
  expect_refused([&] { read_tensors(folder.path()); }, {"model.safetensors", "found none"});
  const std::string torch = read_whole(data_path("torch-1/state_dict.pth"));
  folder.write("a.pth", torch);
  EXPECT_EQ(read_tensors(folder.path()).size(), 2u);
  folder.write("b.pt", torch);
  expect_refused([&] { read_tensors(folder.path()); },
                 {"expected one .pth or .pt file", "a.pth and", "b.pt"});
  folder.write("model.safetensors", read_whole(data_path("safetensors/every_dtype.safetensors")));
  EXPECT_EQ(read_tensors(folder.path()).size(), 10u);
}

TEST(ReadTensors, TensorsOutliveTheMap) {
  const Tensor tensor = read_tensors(data_path("numpy/f4.npy")).at("");
  expect_ramp(tensor, DType::kF32, {2, 3});
}

}  // namespace
}  // namespace deeptail
