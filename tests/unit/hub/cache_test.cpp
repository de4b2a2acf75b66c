#include "hub/cache.h"

#include <gtest/gtest.h>

#include <fstream>

#include "deeptail/hub.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

const std::string kOne = "abcdef0123456789abcdef0123456789abcdef01",
                  kTwo = "abcdef9876543210abcdef0123456789abcdef01";

class HubCache : public ::testing::Test {
 protected:
  HubCache() {
    std::string pattern = (fs::temp_directory_path() / "deeptail-cache-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~HubCache() override { fs::remove_all(root_); }

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  RepoCache repo() const { return RepoCache(root_, "org/name"); }
  fs::path root_;
};

TEST_F(HubCache, LaysOutFilesAsHuggingFaceDoes) {
  EXPECT_EQ(repo().folder(), root_ / "models--org--name");
  EXPECT_EQ(RepoCache(root_, "gpt2").folder(), root_ / "models--gpt2");
  EXPECT_EQ(repo().ref("refs/pr/1"), root_ / "models--org--name/refs/refs/pr/1");
  EXPECT_EQ(repo().snapshot(kOne), root_ / "models--org--name/snapshots" / kOne);
}

TEST_F(HubCache, FindsCommitsByRefByHashAndByItsFirstDigits) {
  EXPECT_FALSE(repo().commit_of("main"));
  write(repo().ref("main"), kOne + "\n");
  EXPECT_EQ(repo().commit_of("main"), kOne);
  EXPECT_FALSE(repo().commit_of(kOne));  // the ref alone is no snapshot
  fs::create_directories(repo().snapshot(kOne));
  fs::create_directories(repo().folder() / "snapshots/abcdef-not-a-commit");
  for (const std::string& revision : {kOne, kOne.substr(0, 12), kOne.substr(0, 4)})
    EXPECT_EQ(repo().commit_of(revision), kOne);
  for (const std::string revision : {"abc", "ABCD", "abcde1", "name"})
    EXPECT_FALSE(repo().commit_of(revision)) << revision;
  fs::create_directories(repo().snapshot(kTwo));
  EXPECT_THROW(repo().commit_of("abcdef"), InputError);
  EXPECT_EQ(repo().commit_of("abcdef9"), kTwo);
  write(repo().ref("abcdef"), kTwo);  // a branch may look like a commit; its name counts
  EXPECT_EQ(repo().commit_of("abcdef"), kTwo);
}

TEST_F(HubCache, ListsWhatIsWhole) {
  ::setenv("HF_HUB_CACHE", root_.c_str(), 1);
  EXPECT_TRUE(list_hub_cache().empty());
  write(repo().ref("main"), kOne);
  write(repo().snapshot(kOne) / "config.json", "{}");
  EXPECT_TRUE(list_hub_cache().empty());  // without its weights
  write(repo().snapshot(kOne) / "model.safetensors", "");
  write(repo().ref("step1000"), kTwo);
  for (const char* file : {"a.gguf", "b-00001-of-00002.gguf", "b-00002-of-00002.gguf", "c-00001-of-00002.gguf"})
    write(repo().snapshot(kTwo) / file, "");
  write(root_ / "models--broken/refs/main", "no commit");
  write(root_ / "datasets--org--name/refs/main", kOne);
  EXPECT_EQ(list_hub_cache(),
            (std::vector<std::string>{"hf:org/name", "hf:org/name@step1000:a.gguf",
                                      "hf:org/name@step1000:b-00001-of-00002.gguf"}));
  for (const std::string& name : list_hub_cache()) EXPECT_NO_THROW(find_in_hub_cache(parse_hub_name(name))) << name;
  ::unsetenv("HF_HUB_CACHE");
}

TEST_F(HubCache, RefusesRefsThatAreNoCommits) {
  for (const std::string& text :
       {std::string(), std::string("main"), std::string("../../x"), kOne + "0", "ABC" + kOne.substr(3)})
    EXPECT_THROW(parse_ref(text, "refs/main"), InputError) << text;
}

TEST_F(HubCache, TellsWhatASnapshotLacks) {
  const fs::path snapshot = repo().snapshot(kOne);
  EXPECT_EQ(missing_part(snapshot, "a.gguf"), "a.gguf");
  write(snapshot / "a.gguf", "x");
  EXPECT_EQ(missing_part(snapshot, "a.gguf"), "");
  write(snapshot / "b-00001-of-00002.gguf", "x");
  EXPECT_EQ(missing_part(snapshot, "b-00001-of-00002.gguf"), "b-00002-of-00002.gguf");
  EXPECT_EQ(missing_part(snapshot, ""), "config.json");
  write(snapshot / "config.json", "{}");
  EXPECT_EQ(missing_part(snapshot, ""), "the weights");
  write(snapshot / "model.safetensors.index.json",
        R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})");
  EXPECT_EQ(missing_part(snapshot, ""), "1.safetensors");
  write(snapshot / "1.safetensors", "x");
  fs::create_symlink("../../blobs/gone", snapshot / "2.safetensors");
  EXPECT_EQ(missing_part(snapshot, ""), "2.safetensors");
  write(repo().blob("gone"), "x");
  EXPECT_EQ(missing_part(snapshot, ""), "");
  for (const char* weights : {"model.safetensors", "pytorch_model.bin", "model_final.pth"}) {
    fs::remove(snapshot / "model.safetensors.index.json");
    EXPECT_EQ(missing_part(snapshot, ""), "the weights") << weights;
    write(snapshot / weights, "x");
    EXPECT_EQ(missing_part(snapshot, ""), "") << weights;
    fs::remove(snapshot / weights);
  }
}

TEST_F(HubCache, AFolderHasAName) {
  EXPECT_EQ(hub_folder_name("/c/models--EleutherAI--pythia-70m/snapshots/" + kOne), "pythia-70m@abcdef0");
  EXPECT_EQ(hub_folder_name("models--gpt2/snapshots/" + kOne), "gpt2@abcdef0");
  EXPECT_EQ(hub_folder_name("models--gpt2/snapshots/" + kOne + "/"), "gpt2@abcdef0");
  EXPECT_EQ(hub_folder_name("/c/models--NeelNanda--GELU_2L512W_C4_Code/snapshots/" + kOne), "gelu-2l");
  for (const std::string& folder :
       {std::string("models/dt-1l"), "models--a--b/" + kOne, std::string("models--a--b/snapshots/main")})
    EXPECT_FALSE(hub_folder_name(folder)) << folder;
}

TEST_F(HubCache, ATokenizerMayLieInAnotherRepository) {
  const fs::path snapshot = repo().snapshot(kOne);
  const RepoCache other(root_, "some/tokenizer");
  const auto found = [&](const std::string& config) {
    write(snapshot / "config.json", config);
    return hub_tokenizer_of(snapshot.string());
  };
  const std::string config = R"({"tokenizer_name": "some/tokenizer"})";
  EXPECT_FALSE(found(config));
  write(other.ref("main"), kTwo);
  EXPECT_FALSE(found(config));
  write(other.snapshot(kTwo) / "tokenizer.json", "{}");
  EXPECT_EQ(found(config), (other.snapshot(kTwo) / "tokenizer.json").string());
  for (const char* none : {"{}", "[]", R"({"tokenizer_name": 3})", R"({"tokenizer_name": "../x"})",
                           R"({"tokenizer_name": null})"})
    EXPECT_FALSE(found(none)) << none;
  write(root_ / "plain/config.json", config);
  EXPECT_FALSE(hub_tokenizer_of((root_ / "plain").string()));
}

TEST(HubRevision, ACommitNeedsNoRef) {
  EXPECT_TRUE(is_commit_itself(kOne, kOne));
  EXPECT_TRUE(is_commit_itself("abcdef0", kOne));
  EXPECT_FALSE(is_commit_itself("main", kOne));
  EXPECT_FALSE(is_commit_itself("abc", kOne));
}

}  // namespace
}  // namespace deeptail
