#include "hub/listing.h"

#include <gtest/gtest.h>

#include "hub/download.h"

namespace deeptail {
namespace {

const std::string kCommit(40, 'c'), kGit(40, 'a'), kLarge(64, 'b');

HubListing listing_of(const std::vector<std::string>& paths) {
  HubListing listing{kCommit, {}};
  for (const std::string& path : paths) listing.files[path] = {path, 1, kGit};
  return listing;
}

std::vector<std::string> wanted(const std::vector<std::string>& paths,
                                const HubName& name = {.repo = "a/b"}) {
  std::vector<std::string> out;
  for (const HubFile& file : wanted_files(listing_of(paths), name)) out.push_back(file.path);
  return out;
}

TEST(HubListing, IsReadFromTheApisAnswer) {
  const HubListing listing = parse_listing(
      R"({"id": "a/b", "sha": ")" + kCommit + R"(", "siblings": [{"rfilename": "x", "size": 7, "blobId": ")" +
          kGit + R"("}, {"rfilename": "y/z", "size": 130, "blobId": ")" + kGit + R"(", "lfs": {"sha256": ")" +
          kLarge + R"(", "size": 9, "pointerSize": 130}}]})",
      "api");
  EXPECT_EQ(listing.commit, kCommit);
  EXPECT_EQ(listing.files.size(), 2u);
  EXPECT_EQ(listing.files.at("x").hash, kGit);
  EXPECT_EQ(listing.files.at("x").size, 7u);
  EXPECT_EQ(listing.files.at("y/z").hash, kLarge);
  EXPECT_EQ(listing.files.at("y/z").size, 9u);
}

TEST(HubListing, TheWeightsAreTheFirstKindThatIsThere) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(wanted({"README.md", "config.json", "model.safetensors", "pytorch_model.bin", "tokenizer.json"}),
            (Names{"config.json", "tokenizer.json", "model.safetensors"}));
  EXPECT_EQ(wanted({"config.json", "model.safetensors.index.json", "model-1.safetensors"}),
            (Names{"config.json", "model.safetensors.index.json"}));
  EXPECT_EQ(wanted({"config.json", "pytorch_model.bin.index.json", "pytorch_model-1.bin"}),
            (Names{"config.json", "pytorch_model.bin.index.json"}));
  EXPECT_EQ(wanted({"config.json", "pytorch_model.bin", "x.pth"}),
            (Names{"config.json", "pytorch_model.bin"}));
  EXPECT_EQ(wanted({"config.json", "model_final.pth", "model_1.pth", "checkpoints/1.pth"}),
            (Names{"config.json", "model_final.pth"}));
  EXPECT_EQ(wanted({"config.json", "only.pt", "checkpoints/1.pth"}), (Names{"config.json", "only.pt"}));
  EXPECT_EQ(wanted({"a.gguf", "b.gguf"}, {.repo = "a/b", .file = "b.gguf"}), Names{"b.gguf"});
  for (const Names& paths :
       {Names{}, Names{"config.json"}, Names{"model.safetensors"}, Names{"config.json", "a.pt", "b.pt"},
        Names{"config.json", "onnx/model.safetensors"}, Names{"a.gguf"}})
    EXPECT_THROW(wanted(paths), InputError);
  const Names parts = {"q/m-00001-of-00002.gguf", "q/m-00002-of-00002.gguf"};
  EXPECT_EQ(wanted(parts, {.repo = "a/b", .file = parts[0]}), parts);
  EXPECT_EQ(wanted(parts, {.repo = "a/b", .file = parts[1]}), parts);
  EXPECT_THROW(wanted({parts[0]}, {.repo = "a/b", .file = parts[0]}), InputError);
  EXPECT_EQ(wanted({"m-00000-of-00000.gguf"}, {.repo = "a/b", .file = "m-00000-of-00000.gguf"}).size(), 1u);
  EXPECT_THROW(wanted({"a.gguf"}, {.repo = "a/b", .file = "b.gguf"}), InputError);
}

TEST(HubListing, AnIndexNamesShardsThatMustBeListed) {
  const HubListing listing = listing_of({"1", "2", "3"});
  const auto shards = shard_files(listing, R"({"weight_map": {"a": "2", "b": "1", "c": "2"}})", "index");
  EXPECT_EQ(shards.size(), 2u);
  EXPECT_THROW(shard_files(listing, R"({"weight_map": {"a": "4"}})", "index"), InputError);
  EXPECT_THROW(shard_files(listing, R"({"weight_map": {"a": "../1"}})", "index"), InputError);
}

TEST(HubRange, TheFirstByteOfAnAnswer) {
  EXPECT_EQ(first_byte("bytes 5-9/10"), 5u);
  EXPECT_EQ(first_byte("bytes 0-9/*"), 0u);
  for (const char* text : {"", "bytes", "bytes ", "bytes 5", "bytes -9/10", "bytes */10", "items 5-9/10",
                           "bytes 99999999999999999999-1/2"})
    EXPECT_FALSE(first_byte(text)) << text;
}

}  // namespace
}  // namespace deeptail
