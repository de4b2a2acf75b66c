#include "tensors/npy.h"

#include <gtest/gtest.h>

#include "build_files.h"

namespace deeptail {
namespace {

using namespace testing;

TEST(Npy, HeaderVariants) {
  for (const char* dict :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
        "{ \"shape\" : ( 2 , 3 , ) , \"fortran_order\" : False , \"descr\" : \"<f4\" }     "}) {
    for (const int version : {1, 2, 3}) {
      const std::string file = npy_file(dict, kSix, version);
      const Tensor tensor = parse_npy(as_bytes(file), "a.npy");
      EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
      EXPECT_EQ(to_float(tensor), (std::vector<float>{-1, 0, 1, 2, 3, 4}));
    }
  }
}

TEST(Npy, RefusesMalformedFiles) {
  const auto refused = [](const std::string& file, const std::vector<std::string>& message) {
    auto fragments = message;
    fragments.push_back("a.npy");
    expect_refused([&] { parse_npy(as_bytes(file), "a.npy"); }, fragments);
  };
  const auto header = [&](const std::string& dict, const std::vector<std::string>& message) {
    refused(npy_file(dict, kSix), message);
  };
  const std::string start = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  refused("\x93NUM", {"truncated at offset 0"});
  refused("\x93NUMPZ\x01", {"expected \\x93NUMPY"});
  refused(npy_file(start + "(2, 3)}", kSix, 4), {"version 4.0, expected 1.0, 2.0 or 3.0"});
  refused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{", 13),
          {"header length 4294967295 reaches beyond the file"});
  refused(npy_file(start + "(2, 3)}", kSix.substr(1)), {"needs 24 bytes, 23 are left", "truncated?"});
  refused(npy_file(start + "(2, 3)}", kSix + "x"), {"needs 24 bytes, 25 are left", "one array per file"});
  header(start + "(3, 3)}", {"shape [3, 3] of float32 needs 36 bytes, 24 are left"});
  header(start + "(9223372036854775807, 3)}", {"needs too many bytes"});
  header(start + "(9223372036854775808,)}", {"a dimension from 0"});
  header(start + "(-1, 3)}", {"a dimension from 0", "found '-1, 3)}"});
  header(start + "(2)}", {"(2) is not"});
  header(start + "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6)}", {"at most 16 dimensions"});
  header(start + "(2, 3)", {"expected '}'"});
  header(start + "(2, 3", {"expected ')'"});
  header(start + "(2, 3)} x", {"nothing after the dictionary", "found 'x"});
  header("{}", {"'descr', 'fortran_order' and 'shape'"});
  header("", {"expected '{'"});
  header("{'descr': '<f4', 'descr': '<f4'}", {"each of the keys"});
  header("{'other': 3}", {"each of the keys"});
  header("{'descr': '<f4}", {"expected a string"});
  header("{'fortran_order': 0}", {"True or False"});
  header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", {"Fortran", "ascontiguousarray"});
  header("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}",
         {"'>f4' is big endian", "astype('<f4')"});
  header("{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", {"unknown dtype '<c8'"});
  header("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", {"unknown dtype '|O'"});
  header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}",
         {"structured arrays are not read"});
}

TEST(WriteNpy, ReadsBack) {
  const TempFolder folder;
  const std::vector<float> values{-1, 0, 1, 2, 3, 4};
  for (const std::vector<std::int64_t>& shape :
       std::vector<std::vector<std::int64_t>>{{6}, {2, 3}, {1, 6, 1}, {3, 2}}) {
    write_npy(folder.path("a.npy"), values, shape);  // over the previous one
    const Tensor tensor = read_tensors(folder.path("a.npy")).at("");
    EXPECT_EQ(tensor.shape, shape);
    EXPECT_EQ(to_float(tensor), values);
    EXPECT_EQ(static_cast<std::size_t>(tensor.bytes.data() - tensor.file->bytes().data()) % 64, 0u);
  }
  write_npy(folder.path("scalar.npy"), std::vector<float>{5}, {});
  EXPECT_EQ(to_float(read_tensors(folder.path("scalar.npy")).at("")), std::vector<float>{5});
  write_npy(folder.path("empty.npy"), {}, std::vector<std::int64_t>{0, 3});
  EXPECT_EQ(read_tensors(folder.path("empty.npy")).at("").size(), 0u);
}

TEST(WriteNpy, MatchesNumPy) {
  const TempFolder folder;
  write_npy(folder.path("a.npy"), std::vector<float>{-1, 0, 1, 2, 3, 4}, std::vector<std::int64_t>{2, 3});
  EXPECT_EQ(read_whole(folder.path("a.npy")), read_whole(data_path("numpy/f4.npy")));
}

TEST(WriteNpy, LeavesNothingBehindOnFailure) {
  const TempFolder folder;
  const std::vector<float> values{1};
  const std::vector<std::int64_t> shape{1};
  expect_refused([&] { write_npy(folder.path("absent/a.npy"), values, shape); },
                 {"absent/a.npy: cannot create"});
  std::filesystem::create_directory(folder.path("a.npy"));
  expect_refused([&] { write_npy(folder.path("a.npy"), values, shape); }, {"a.npy: cannot write"});
  EXPECT_THROW(write_npy(folder.path("b.npy"), values, std::vector<std::int64_t>{2}), std::invalid_argument);
  const auto files = std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);  // the folder a.npy
}

}  // namespace
}  // namespace deeptail
