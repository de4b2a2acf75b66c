#include "tensors/torch_file.h"

#include <gtest/gtest.h>

#include "build_files.h"

namespace deeptail {
namespace {

using namespace testing;

std::string tensor(std::int32_t offset, const std::vector<std::int32_t>& size,
                   const std::vector<std::int32_t>& stride) {
  return pickle_tensor(pickle_storage("FloatStorage", "0", 6), offset, pickle_tuple(size),
                       pickle_tuple(stride));
}

const std::string kTensor = tensor(0, {2, 3}, {3, 1});

TensorMap parse_body(const std::string& body) {
  static std::string file;  // the tensors point into it
  file = torch_file(pickle_program(body), {{"0", kSix}});
  return parse_torch_zip(as_bytes(file), "m.pth");
}

TEST(TorchFile, DictionariesAndSingleTensors) {
  EXPECT_EQ(to_float(parse_body(kTensor).at("")), (std::vector<float>{-1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(parse_body(pickle_dict({{"a", kTensor}, {"b", tensor(2, {2}, {1})}})).size(), 2u);
  EXPECT_EQ(to_float(parse_body(pickle_dict({{"b", tensor(2, {2}, {1})}})).at("b")),
            (std::vector<float>{1, 2}));
  EXPECT_EQ(
      parse_body(pickle_dict({{"model", pickle_dict({{"a", kTensor}})}, {"epoch", "K\x03"}})).count("a"), 1u);
  EXPECT_TRUE(parse_body(pickle_dict({})).empty());
}

TEST(TorchFile, StridesThatDoNotMatterAreIgnored) {
  EXPECT_EQ(to_float(parse_body(tensor(0, {2, 1, 3}, {3, 99, 1})).at("")).size(), 6u);  // an axis of length 1
  EXPECT_EQ(to_float(parse_body(tensor(6, {0, 3}, {7, 7})).at("")).size(), 0u);         // no values
  EXPECT_EQ(to_float(parse_body(tensor(5, {}, {})).at("")), std::vector<float>{4});     // a scalar
}

TEST(TorchFile, RefusesWhatIsNotADictionaryOfTensors) {
  const auto refused = [](const std::string& body, const std::vector<std::string>& message) {
    expect_refused([&] { parse_body(body); }, message);
  };
  refused("]", {"m.pth: expected a tensor or a dictionary of tensors, found a list"});
  refused(pickle_dict({{"a", kTensor}, {"b", "K\x01"}}), {"key 'b': expected a tensor, found a int"});
  refused(pickle_dict({{"a", kTensor}, {"a", kTensor}}), {"key 'a' appears twice"});
  refused("}(K\x01" + kTensor + "u", {"keys that are strings, found a int"});
  refused(pickle_dict({{"a", pickle_dict({})}, {"b", pickle_dict({})}}), {"found several ('a' and 'b')"});
  refused(pickle_dict({{"a", kTensor}, {"b", pickle_dict({})}}), {"'a' next to the dictionary 'b'"});
  refused(pickle_dict({{"a", "]"}, {"b", pickle_dict({})}}), {"'a' next to the dictionary 'b'"});
  refused(pickle_dict({{"m", pickle_dict({{"n", pickle_dict({})}})}}),
          {"key 'n': expected a tensor, found a dictionary"});
  refused("}q\x01" + pickle_string("self") + "h\x01s", {"key 'self': expected a tensor"});  // a cycle
}

TEST(TorchFile, RefusesTensorsThatDoNotFit) {
  const auto refused = [](const std::string& value, const std::vector<std::string>& message) {
    auto fragments = message;
    fragments.push_back("m.pth: tensor 'a'");
    expect_refused([&] { parse_body(pickle_dict({{"a", value}})); }, fragments);
  };
  const auto six = pickle_tuple({6}), one = pickle_tuple({1});
  refused(tensor(0, {3, 2}, {1, 3}), {"shape [3, 2] with strides [1, 3] is not contiguous", ".contiguous()"});
  refused(tensor(0, {2, 3}, {0, 1}), {"not contiguous"});
  refused(tensor(0, {2, 3}, {1}), {"not contiguous"});
  refused(tensor(1, {2, 3}, {3, 1}), {"shape [2, 3] at offset 1 reaches beyond its storage of 6 values"});
  refused(tensor(7, {0}, {1}), {"at offset 7 reaches beyond"});
  refused(tensor(-1, {1}, {1}), {"at offset -1 reaches beyond"});
  refused(tensor(0, {-1}, {1}), {"shape [-1] is not valid"});
  refused(tensor(0, {2147483647, 2147483647, 2147483647}, {1, 1, 1}), {"is not valid"});
  refused(tensor(0, std::vector<std::int32_t>(17, 1), {}), {"at most 16 integers"});
  refused(pickle_tensor(pickle_storage("FloatStorage", "0", 5), 0, six, one),
          {"data/0 has 24 bytes, expected 5 values"});
  refused(pickle_tensor(pickle_storage("HalfStorage", "0", 6), 0, six, one),
          {"expected 6 values of float16"});
  refused(pickle_tensor(pickle_storage("FloatStorage", "9", 6), 0, six, one), {"storage data/9 is missing"});
  refused(pickle_tensor(pickle_storage("float32", "0", 6), 0, six, one),
          {"unknown storage type 'torch.float32'"});
  refused(pickle_tensor("N", 0, six, one), {"expected a storage"});
  refused(pickle_tensor(pickle_storage("FloatStorage", "0", 6), 0, "N", one), {"expected size and stride"});
  refused(pickle_tensor(pickle_storage("FloatStorage", "0", 6), 0, "(Nt", one), {"integers, found a None"});
  refused("ctorch._utils\n_rebuild_tensor_v2\n)R", {"expected torch._utils._rebuild_tensor_v2(storage"});
  refused("ctorch._utils\n_rebuild_parameter\n)R", {"expected torch._utils._rebuild_tensor_v2(storage"});
  refused("ctorch._utils\n_rebuild_parameter\nN\x85R", {"expected torch._utils._rebuild_tensor_v2(storage"});
}

TEST(TorchFile, RefusesEndlessSharing) {
  const std::string big(100000, '\0');
  std::vector<std::pair<std::string, std::string>> items;
  for (int i = 0; i < 40; ++i)
    items.emplace_back(std::to_string(i), pickle_tensor(pickle_storage("ByteStorage", "0", 100000), 0,
                                                        pickle_tuple({100000}), pickle_tuple({1})));
  const std::string file = torch_file(pickle_program(pickle_dict(items)), {{"0", big}});
  expect_refused([&] { parse_torch_zip(as_bytes(file), "m.pth"); }, {"over 16 times the file's size"});
}

TEST(TorchFile, RefusesOtherArchives) {
  const auto refused = [](const std::vector<ZipItem>& items, const std::vector<std::string>& message) {
    const std::string file = zip_file(items);
    expect_refused([&] { parse_torch_zip(as_bytes(file), "m.pth"); }, message);
  };
  const std::string pickle = pickle_program("}");
  refused({}, {"m.pth: a zip file without data.pkl"});
  refused({{"a.npy", ""}}, {"without data.pkl", ".npz"});
  refused({{"a/data.pkl", pickle}, {"b/data.pkl", pickle}}, {"expected one data.pkl", "found several"});
  refused({{"a/data.pkl", pickle}, {"a/byteorder", "big"}}, {"byte order is 'big', expected 'little'"});
  refused({{"a/data.pkl", "\x80\x02"}}, {"m.pth: data.pkl: truncated at offset 2"});
}

}  // namespace
}  // namespace deeptail
