// Every block format against the package gguf's values, and against a reference that computes one value at a
// time from the format's description. To the bit.
#include "tensors/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "build_gguf.h"
#include "tensors/gguf.h"
#include "tensors/half.h"

namespace deeptail {
namespace {

using namespace testing;

constexpr DType kBlockTypes[] = {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                 DType::kQ8_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

struct Bytes {
  const std::string& block;
  unsigned u8(std::size_t i) const { return static_cast<unsigned char>(block[i]); }
  float i8(std::size_t i) const { return static_cast<float>(static_cast<signed char>(block[i])); }
  float half(std::size_t i) const {
    return half_to_float(static_cast<std::uint16_t>(u8(i) | u8(i + 1) << 8));
  }
  unsigned bit(std::size_t first, std::size_t i) const { return u8(first + i / 8) >> (i % 8) & 1u; }
  // Value i of 32 that lie in 16 bytes.
  unsigned nibble(std::size_t first, std::size_t i) const {
    return i < 16 ? u8(first + i) & 15u : u8(first + i - 16) >> 4;
  }
};

struct SixBits {
  unsigned scale, minimum;
};
SixBits six_bits(Bytes b, std::size_t j) {
  const auto s = [&](std::size_t i) { return b.u8(4 + i); };
  if (j < 4) return {s(j) % 64, s(j + 4) % 64};
  return {s(j + 4) % 16 + 16 * (s(j - 4) / 64), s(j + 4) / 16 + 16 * (s(j) / 64)};
}

float k_value(Bytes b, std::size_t i, std::size_t nibbles, unsigned fifth) {
  const std::size_t j = i / 32;
  const auto [scale, minimum] = six_bits(b, j);
  const unsigned both = b.u8(nibbles + 32 * (j / 2) + i % 32);
  const unsigned n = (j % 2 == 0 ? both % 16 : both / 16) + 16 * fifth;
  const float step = b.half(0) * static_cast<float>(scale), low = b.half(2) * static_cast<float>(minimum);
  const float product = step * static_cast<float>(n);
  return product - low;
}

float q6_k_value(Bytes b, std::size_t i) {
  const std::size_t a = i / 128, k = i % 128 / 32, l = i % 32;
  const unsigned both = b.u8(64 * a + 32 * (k % 2) + l);
  const unsigned n = (k < 2 ? both % 16 : both / 16) + 16 * (b.u8(128 + 32 * a + l) >> 2 * k & 3u);
  const float step = b.half(208) * b.i8(192 + i / 16);
  return step * (static_cast<float>(n) - 32.0f);
}

float reference_value(DType dtype, Bytes b, std::size_t i) {
  const auto f = [](unsigned n) { return static_cast<float>(n); };
  switch (dtype) {
    case DType::kQ4_0:
      return b.half(0) * (f(b.nibble(2, i)) - 8);
    case DType::kQ4_1: {
      const float product = b.half(0) * f(b.nibble(4, i));
      return product + b.half(2);
    }
    case DType::kQ5_0:
      return b.half(0) * (f(b.nibble(6, i) + 16 * b.bit(2, i)) - 16);
    case DType::kQ5_1: {
      const float product = b.half(0) * f(b.nibble(8, i) + 16 * b.bit(4, i));
      return product + b.half(2);
    }
    case DType::kQ8_0:
      return b.half(0) * b.i8(2 + i);
    case DType::kQ4_K:
      return k_value(b, i, 16, 0);
    case DType::kQ5_K:
      return k_value(b, i, 48, b.u8(16 + i % 32) >> (i / 32) & 1u);
    default:
      return q6_k_value(b, i);
  }
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(Blocks, AreWhatGgufMakesOfThem) {
  const TensorMap tensors = read_tensors(data_path("gguf/blocks.gguf"));
  ASSERT_EQ(tensors.size(), 20u);
  for (const auto& [name, expected] : tensors) {
    if (!name.ends_with(".values")) continue;
    const Tensor& packed = tensors.at(name.substr(0, name.size() - 7));
    EXPECT_EQ(packed.shape, expected.shape);
    ASSERT_EQ(packed.size(), expected.size()) << name;
    const auto values = to_float(packed), wanted = to_float(expected);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(bits(values[i]), bits(wanted[i])) << name << " value " << i;
  }
}

TEST(Blocks, AreWhatTheFormatSays) {
  std::mt19937 random(7);
  for (const DType dtype : kBlockTypes) {
    const auto [n, n_bytes] = block_size(dtype);
    std::vector<float> values(n);
    std::string block(n_bytes, '\0');
    for (int trial = 0; trial < 50; ++trial) {
      for (char& c : block) c = static_cast<char>(random());
      unpack_block(dtype)(as_bytes(block).data(), values.data());
      for (std::size_t i = 0; i < n; ++i) {
        const float expected = reference_value(dtype, {block}, i);
        if (std::isnan(expected))
          ASSERT_TRUE(std::isnan(values[i])) << name_of(dtype) << " value " << i;
        else
          ASSERT_EQ(bits(values[i]), bits(expected)) << name_of(dtype) << " value " << i;
      }
    }
  }
}

// Of an infinite or undefined scale no value is left, whatever the integers are.
TEST(Blocks, RefusesScalesThatAreNoNumbers) {
  std::mt19937 random(8);
  for (const DType dtype : kBlockTypes) {
    const auto [n, n_bytes] = block_size(dtype);
    const std::vector<std::size_t> halves = dtype == DType::kQ6_K ? std::vector<std::size_t>{208}
                                            : n_bytes == 18 || n_bytes == 22 || n_bytes == 34
                                                ? std::vector<std::size_t>{0}
                                                : std::vector<std::size_t>{0, 2};
    for (const std::size_t at : halves)
      for (const unsigned top : {0x7cu, 0xfcu, 0x7eu}) {  // +Inf, -Inf, NaN
        std::string two(2 * n_bytes, '\0');
        for (std::size_t i = n_bytes; i < two.size(); ++i) two[i] = static_cast<char>(random() % 0x40);
        two[n_bytes + at] = 0;
        two[n_bytes + at + 1] = static_cast<char>(top);
        const Tensor tensor{"w", dtype, {1, static_cast<std::int64_t>(2 * n)}, as_bytes(two), nullptr};
        expect_refused([&] { to_float(tensor); },
                       {"tensor 'w'", "expected finite values", fmt::format("at index [0, {}]", n)});
      }
  }
}

TEST(Blocks, AreNoIntegers) {
  const std::string block(34, '\0');
  const Tensor tensor{"w", DType::kQ8_0, {32}, as_bytes(block), nullptr};
  EXPECT_EQ(tensor.size(), 32u);
  expect_refused([&] { to_int64(tensor); }, {"expected integers, found Q8_0"});
}

}  // namespace
}  // namespace deeptail
