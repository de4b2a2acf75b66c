#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "build_files.h"
#include "tensors/layout.h"

namespace deeptail {
namespace {

using namespace testing;

constexpr std::int64_t kBig = std::numeric_limits<std::int64_t>::max();

TEST(Layout, ByteSize) {
  const auto size = [](DType dtype, std::vector<std::int64_t> shape) { return byte_size(dtype, shape); };
  EXPECT_EQ(size(DType::kF32, {}), 4u);
  EXPECT_EQ(size(DType::kF64, {2, 3}), 48u);
  EXPECT_EQ(size(DType::kF16, {5, 0, 3}), 0u);
  EXPECT_EQ(size(DType::kU8, {kBig}), static_cast<std::size_t>(kBig));
  EXPECT_EQ(size(DType::kF16, {kBig}), std::nullopt);
  EXPECT_EQ(size(DType::kU8, {1LL << 32, 1LL << 32}), std::nullopt);
  EXPECT_EQ(size(DType::kU8, {-1}), std::nullopt);
  // A zero does not hide dimensions whose product would overflow elsewhere.
  EXPECT_EQ(size(DType::kU8, {0, kBig, kBig}), std::nullopt);
}

template <class T>
struct Owned {
  explicit Owned(DType dtype, std::vector<T> v, std::vector<std::int64_t> shape = {}) : values(std::move(v)) {
    if (shape.empty()) shape = {static_cast<std::int64_t>(values.size())};
    tensor = {"W", dtype, shape, std::as_bytes(std::span(values)), nullptr};
  }
  std::vector<T> values;
  Tensor tensor;
};

TEST(ToFloat, EveryDType) {
  const std::vector<float> expected{0, 1, 2};
  EXPECT_EQ(to_float(Owned<std::uint16_t>(DType::kF16, {0, 0x3c00, 0x4000}).tensor), expected);
  EXPECT_EQ(to_float(Owned<std::uint16_t>(DType::kBF16, {0, 0x3f80, 0x4000}).tensor), expected);
  EXPECT_EQ(to_float(Owned<float>(DType::kF32, {0, 1, 2}).tensor), expected);
  EXPECT_EQ(to_float(Owned<double>(DType::kF64, {0, 1, 2}).tensor), expected);
  EXPECT_EQ(to_float(Owned<std::int32_t>(DType::kI32, {0, 1, 2}).tensor), expected);
  EXPECT_EQ(to_float(Owned<std::int64_t>(DType::kI64, {0, 1, 2}).tensor), expected);
  EXPECT_EQ(to_float(Owned<std::uint8_t>(DType::kU8, {0, 1, 2}).tensor), expected);
  EXPECT_EQ(to_float(Owned<std::uint8_t>(DType::kBool, {0, 1, 2}).tensor), (std::vector<float>{0, 1, 1}));
}

TEST(ToFloat, RefusesNonFiniteValues) {
  const float nan = NAN, inf = INFINITY;
  const auto refuse = [](const Tensor& tensor, const std::string& fragment) {
    expect_refused([&] { to_float(tensor); }, {"tensor 'W'", fragment});
  };
  refuse(Owned<float>(DType::kF32, {0, 1, 2, 3, 4, nan}, {2, 3}).tensor, "found NaN at index [1, 2]");
  refuse(Owned<float>(DType::kF32, {0, inf}).tensor, "found +Inf at index [1]");
  refuse(Owned<double>(DType::kF64, {-double{inf}}).tensor, "found -Inf at index [0]");
  refuse(Owned<double>(DType::kF64, {1e300}).tensor, "1e+300 at index [0] does not fit in float32");
  refuse(Owned<std::uint16_t>(DType::kF16, {0x7c01}).tensor, "found NaN at index [0]");
  refuse(Owned<std::uint16_t>(DType::kBF16, {0, 0xff80}).tensor, "found -Inf at index [1]");
}

TEST(ToInt64, IntegersOnly) {
  EXPECT_EQ(to_int64(Owned<std::int64_t>(DType::kI64, {-kBig, kBig}).tensor),
            (std::vector<std::int64_t>{-kBig, kBig}));
  EXPECT_EQ(to_int64(Owned<std::int32_t>(DType::kI32, {-7}).tensor), std::vector<std::int64_t>{-7});
  EXPECT_EQ(to_int64(Owned<std::uint8_t>(DType::kU8, {255}).tensor), std::vector<std::int64_t>{255});
  EXPECT_EQ(to_int64(Owned<std::uint8_t>(DType::kBool, {0, 3}).tensor), (std::vector<std::int64_t>{0, 1}));
  expect_refused([] { to_int64(Owned<float>(DType::kF32, {1}).tensor); },
                 {"expected integers, found float32"});
}

}  // namespace
}  // namespace deeptail
