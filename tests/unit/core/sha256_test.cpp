#include "core/sha256.h"

#include <gtest/gtest.h>

namespace deeptail {
namespace {

// Examples of FIPS 180-4 and of the NIST test vectors.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameHash) {
  const std::string text(1000, 'x');
  for (const std::size_t piece : {1, 7, 55, 56, 63, 64, 65, 128, 999}) {
    Sha256 hash;
    for (std::size_t at = 0; at < text.size(); at += piece)
      hash.add(std::as_bytes(std::span(text).subspan(at, std::min(piece, text.size() - at))));
    EXPECT_EQ(hash.hex(), sha256_hex(text)) << piece;
  }
}

TEST(Sha256, TellsHashesFromOtherText) {
  EXPECT_TRUE(is_sha256_hex(sha256_hex("")));
  EXPECT_FALSE(is_sha256_hex("abc"));
  EXPECT_FALSE(is_sha256_hex(std::string(64, 'G')));
}

}  // namespace
}  // namespace deeptail
