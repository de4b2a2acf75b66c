#include <gtest/gtest.h>

#include "deeptail/hub.h"
#include "hub/safe_path.h"

namespace deeptail {
namespace {

TEST(HubName, HasARepositoryARevisionAndAFile) {
  const HubName plain = parse_hub_name("hf:EleutherAI/pythia-70m");
  EXPECT_EQ(plain.repo, "EleutherAI/pythia-70m");
  EXPECT_EQ(plain.revision, "main");
  EXPECT_EQ(plain.file, "");
  const HubName all = parse_hub_name("hf:org/a.b_c-D@refs/pr/1:sub/x-q8_0.gguf");
  EXPECT_EQ(all.repo, "org/a.b_c-D");
  EXPECT_EQ(all.revision, "refs/pr/1");
  EXPECT_EQ(all.file, "sub/x-q8_0.gguf");
  EXPECT_EQ(parse_hub_name("hf:gpt2").repo, "gpt2");
  for (const char* text : {"hf:gpt2", "hf:a/b@step1000", "hf:a/b:c.gguf", "hf:a/b@v1/2:c/d.gguf"})
    EXPECT_EQ(parse_hub_name(text).text(), text);
}

TEST(HubName, RefusesWhatTheHubWouldNotTake) {
  for (const char* text : {"a/b",
                           "hf:",
                           "hf:/",
                           "hf:a/",
                           "hf:/b",
                           "hf:a/b/c",
                           "hf:a b/c",
                           "hf:a/b--c",
                           "hf:a/b..c",
                           "hf:a/b.git",
                           "hf:-a/b",
                           "hf:a/b-",
                           "hf:.a/b",
                           "hf:a/b.",
                           "hf:../b",
                           "hf:a/b@",
                           "hf:a/b@../x",
                           "hf:a/b@/x",
                           "hf:a/b@x//y",
                           "hf:a/b:",
                           "hf:a/b:/etc/passwd",
                           "hf:a/b:../x.gguf",
                           "hf:a/b:x/../../y",
                           "hf:a/b:x:y",
                           "hf:a/b@x\\y"})
    EXPECT_THROW(parse_hub_name(text), InputError) << text;
  EXPECT_THROW(parse_hub_name("hf:a/" + std::string(97, 'b')), InputError);
  EXPECT_NO_THROW(parse_hub_name("hf:a/" + std::string(96, 'b')));
}

TEST(HubName, ThePapersModelsHaveNamesOfTheirOwn) {
  EXPECT_EQ(hub_alias("gelu-1l")->text(), "hf:NeelNanda/GELU_1L512W_C4_Code");
  EXPECT_EQ(hub_alias("gelu-2l")->text(), "hf:NeelNanda/GELU_2L512W_C4_Code");
  EXPECT_EQ(hub_alias("gelu-4l")->text(), "hf:NeelNanda/GELU_4L512W_C4_Code");
  EXPECT_FALSE(hub_alias("dt-1l"));
}

TEST(SafePath, StaysWithinItsFolder) {
  for (const char* path : {"a", "a/b.c", "..a", "a..", "...", "a b", "\xc3\xa9/x"})
    EXPECT_TRUE(is_safe_path(path)) << path;
  for (const char* path : {"", "/", "/a", "a/", "a//b", ".", "..", "./a", "../a", "a/..", "a/./b", "a\\b",
                           "c:x", "a\nb", "\x7f"})
    EXPECT_FALSE(is_safe_path(path)) << path;
  EXPECT_FALSE(is_safe_path(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_safe_path(std::string(256, 'a')));
}

}  // namespace
}  // namespace deeptail
