#include "hub/settings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "deeptail/core.h"

namespace deeptail {
namespace {

// A map must outlive what is made of it.
Environment of(const std::map<std::string, std::string>& variables) {
  return [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::string cache_of(std::map<std::string, std::string> variables) {
  variables.emplace("HOME", "/house/me");
  return hub_cache_folder(of(variables)).string();
}

HubSettings settings_of(std::map<std::string, std::string> variables) {
  variables.emplace("HOME", "/no-such-home");
  return hub_settings(of(variables));
}

TEST(HubSettings, TheCacheIsWhereTheFirstVariableSays) {
  EXPECT_EQ(cache_of({}), "/house/me/.cache/huggingface/hub");
  EXPECT_EQ(cache_of({{"XDG_CACHE_HOME", "/x"}}), "/x/huggingface/hub");
  EXPECT_EQ(cache_of({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/h"}}), "/h/hub");
  EXPECT_EQ(cache_of({{"HF_HOME", "/h"}, {"HUGGINGFACE_HUB_CACHE", "/old"}}), "/old");
  EXPECT_EQ(cache_of({{"HUGGINGFACE_HUB_CACHE", "/old"}, {"HF_HUB_CACHE", "/new"}}), "/new");
  EXPECT_EQ(cache_of({{"HF_HUB_CACHE", "~/c"}, {"HF_HOME", "/h"}}), "/house/me/c");
  EXPECT_EQ(cache_of({{"HF_HUB_CACHE", ""}, {"HF_HOME", ""}}), "/house/me/.cache/huggingface/hub");
  EXPECT_THROW(hub_cache_folder([](const char*) { return nullptr; }), InputError);
}

TEST(HubSettings, OfflineIsSaidInSeveralWays) {
  EXPECT_FALSE(settings_of({}).offline);
  for (const char* yes : {"1", "on", "Yes", "TRUE"}) {
    EXPECT_TRUE(settings_of({{"HF_HUB_OFFLINE", yes}}).offline) << yes;
    EXPECT_TRUE(settings_of({{"TRANSFORMERS_OFFLINE", yes}}).offline) << yes;
    EXPECT_FALSE(settings_of({{"HF_HUB_DISABLE_SYMLINKS", yes}}).links) << yes;
  }
  for (const char* no : {"", "0", "off", "2"})
    EXPECT_FALSE(settings_of({{"HF_HUB_OFFLINE", no}}).offline) << no;
}

TEST(HubSettings, TheEndpointIsAnAddress) {
  EXPECT_EQ(settings_of({}).endpoint, "https://huggingface.co");
  EXPECT_EQ(settings_of({{"HF_ENDPOINT", " https://mirror/hf// "}}).endpoint, "https://mirror/hf");
  for (const char* wrong : {"mirror", "ftp://x", "http://a b", "https://x\ny"})
    EXPECT_THROW(settings_of({{"HF_ENDPOINT", wrong}}), InputError) << wrong;
}

TEST(HubSettings, TheTokenIsInAVariableOrAFile) {
  const std::string file = ::testing::TempDir() + "deeptail-token";
  std::ofstream(file) << " of-file \n";
  EXPECT_EQ(settings_of({}).token, "");
  EXPECT_EQ(settings_of({{"HF_TOKEN_PATH", file}}).token, "of-file");
  EXPECT_EQ(settings_of({{"HF_TOKEN_PATH", file}, {"HUGGING_FACE_HUB_TOKEN", "old"}}).token, "old");
  EXPECT_EQ(settings_of({{"HF_TOKEN", "new\n"}, {"HUGGING_FACE_HUB_TOKEN", "old"}}).token, "new");
  EXPECT_EQ(settings_of({{"HF_TOKEN", "new"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}).token, "");
  for (const char* wrong : {"a b", "a\r\nHost: x", "\xc3\xa9"})
    EXPECT_THROW(settings_of({{"HF_TOKEN", wrong}}), InputError) << wrong;
}

TEST(HubSettings, PatienceIsSeconds) {
  EXPECT_EQ(settings_of({{"HF_HUB_DOWNLOAD_TIMEOUT", "7"}}).patience, 7u);
  for (const char* wrong : {"0", "-1", "1.5", "x", "86401"})
    EXPECT_THROW(settings_of({{"HF_HUB_DOWNLOAD_TIMEOUT", wrong}}), InputError) << wrong;
}

}  // namespace
}  // namespace deeptail
