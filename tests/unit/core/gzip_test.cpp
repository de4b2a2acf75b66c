#include "core/gzip.h"

#include <gtest/gtest.h>

#include "deeptail/core.h"

namespace deeptail {
namespace {

TEST(Gzip, TextComesBack) {
  for (const std::size_t n : {0u, 1u, 1000u, 1u << 20}) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += static_cast<char>(i * i % 251);
    const std::string bytes = gzipped(text);
    EXPECT_EQ(bytes.substr(0, 2), "\x1f\x8b");
    EXPECT_EQ(gunzipped(bytes, "file"), text) << n;
    EXPECT_EQ(gzipped(text), bytes);
  }
}

void refuses(std::string_view bytes, std::string_view why) {
  try {
    gunzipped(bytes, "file");
    FAIL() << why;
  } catch (const InputError& e) {
    EXPECT_NE(std::string_view(e.what()).find(why), std::string_view::npos) << e.what();
    EXPECT_EQ(std::string_view(e.what()).substr(0, 5), "file:");
  }
}

TEST(Gzip, WhatIsNoneIsRefused) {
  const std::string good = gzipped("some text");
  refuses("", "too early");
  refuses(good.substr(0, good.size() - 3), "too early");
  refuses("{\"schema\": 1}", "bytes that are none");
  refuses(good + "x", "1 bytes follow");
  std::string damaged = good;
  damaged[good.size() - 6] ^= 1;  // of the checksum
  refuses(damaged, "bytes that are none");
}

}  // namespace
}  // namespace deeptail
