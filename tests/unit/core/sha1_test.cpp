#include "core/sha1.h"

#include <gtest/gtest.h>

#include <span>

namespace deeptail {
namespace {

std::string sha1_hex(std::string_view text, std::size_t piece = 1000) {
  Sha1 hash;
  for (std::size_t at = 0; at < text.size(); at += piece)
    hash.add(std::as_bytes(std::span(text).subspan(at, std::min(piece, text.size() - at))));
  return hash.hex();
}

// Examples of FIPS 180-4 and of the NIST test vectors.
TEST(Sha1, KnownAnswers) {
  EXPECT_EQ(sha1_hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1_hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sha1_hex(std::string(1000000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(Sha1, PiecesGiveTheSameHash) {
  const std::string text(1000, 'x');
  for (const std::size_t piece : {1, 7, 55, 56, 63, 64, 65, 128, 999})
    EXPECT_EQ(sha1_hex(text, piece), sha1_hex(text)) << piece;
}

TEST(Sha1, TellsHexFromOtherText) {
  EXPECT_TRUE(is_hex("0123456789abcdef", 16));
  for (const char* other :
       {"", "0123456789abcdeF", "0123456789abcdeg", "0123456789abcde", "0123456789abcdef0"})
    EXPECT_FALSE(is_hex(other, 16)) << other;
}

}  // namespace
}  // namespace deeptail
