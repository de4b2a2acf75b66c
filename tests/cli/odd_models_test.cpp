// Models and distributions that are unlike the shipped ones, given to the program as a user gives them.
#include <fmt/format.h>

#include <cstring>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class OddModels : public CliTest {
 protected:
  OddModels() {
    fs::copy(std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64", folder_ / "m");  // 97 tokens
    write("d.json", distribution(97));
  }
  static std::string distribution(int d_vocab) {
    return fmt::format(
        R"({{"format":"deeptail-distribution-1","name":"d","d_vocab":{},"positions":["t","t"],)"
        R"("tables":{{"t":{{"ids":[1,50,60,90],"probabilities":[0.25,0.25,0.25,0.25]}}}}}})",
        d_vocab);
  }
  std::string pair() const { return " --model '" + path("m") + "' --dist '" + path("d.json") + "' "; }
  void set(const std::string& key, const Json& value) const {
    Json config = parse_json(read(path("m/config.json")), "config.json");
    config[key] = value;
    write("m/config.json", json_text(config));
  }
  // Ids 40 to 57 and those from 80 on have no token.
  void give_a_tokenizer_with_gaps() const {
    Json vocab = Json::object();
    for (int id = 0; id < 80; ++id)
      if (id < 40 || id > 57) vocab[std::string(1, static_cast<char>('!' + id))] = id;
    const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    write("m/tokenizer.json",
          json_text(Json{{"pre_tokenizer", byte_level},
                         {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array()}}}}));
    set("tokenizer_file", "tokenizer.json");
  }
  // Numbers up to 1e15 in place of the fixture's, two bytes each: finite, but their products are not.
  void make_weights_overflow() const {
    const std::string weights = read(path("m/model.safetensors"));
    std::uint64_t header_size = 0;
    std::memcpy(&header_size, weights.data(), sizeof header_size);
    Json header = parse_json(weights.substr(8, header_size), "header");
    for (auto& [name, tensor] : header.items()) {
      if (name == "__metadata__") continue;
      tensor["dtype"] = "F32";
      for (Json& offset : tensor["data_offsets"]) offset = 2 * offset.get<std::uint64_t>();
    }
    std::string values;
    for (std::size_t at = 8 + header_size; at < weights.size(); at += 2) {
      std::int16_t bits = 0;
      std::memcpy(&bits, weights.data() + at, sizeof bits);
      const float value = 1e15f / 32768.0f * static_cast<float>(bits);
      values.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    const std::string text = json_text(header);
    header_size = text.size();
    write("m/model.safetensors",
          std::string(reinterpret_cast<const char*>(&header_size), sizeof header_size) + text + values);
  }
};

TEST_F(OddModels, IdsWithoutTokensDoNotCostAFinishedEstimate) {
  give_a_tokenizer_with_gaps();
  ASSERT_EQ(run("truth --samples 4096 --quiet --out '" + path("t.json") + "'" + pair()).code, 0);
  const Json counts = parse_json(read(path("t.json")), "t.json").at("counts");
  const std::string said = counts.begin().key();
  for (const std::string method : {"mc --budget 2000", "tokensplit --budget 2000 --replicas 2"}) {
    const Json e = json("estimate --target " + said + " --method " + method + pair());
    ASSERT_FALSE(e.at("triggers").empty()) << method;
    for (const Json& trigger : e.at("triggers")) {
      std::string expected;
      for (const Json& id : trigger.at("tokens"))
        expected += id == 1 ? "\"" : id == 60 ? "]" : "<|id " + json_text(id) + "|>";
      EXPECT_EQ(trigger.at("text"), expected);
    }
  }
  EXPECT_EQ(run("estimate --target " + said + " --method mc --budget 2000" + pair()).code, 0);
  write("s.toml",
        fmt::format("name = \"s\"\nmodels = [\"{0}/m\"]\ndistributions = [\"{0}/d.json\"]\n[targets]\n"
                    "band = [1e-4, 1.0]\ncount = 2\ntruth = \"{0}/t.json\"\n[[methods]]\nmethod = "
                    "\"mc\"\nbudget = 1000\n",
                    folder_.string()));
  const Outcome bench = run("bench run '" + path("s.toml") + "' --quiet --out '" + path("run") + "'");
  EXPECT_EQ(bench.code, 0) << bench.err;
}

TEST_F(OddModels, ANumberBeyondFloat32IsNoToken) {
  make_weights_overflow();
  const std::string message = "model rand-1l-64: NaN or infinite logits for an input";
  refused("estimate --target 3 --method mc --budget 1000 --quiet" + pair(), message);
  refused("estimate --target 3 --budget 2000 --quiet" + pair(), message);
  refused("truth --samples 1000 --quiet --out '" + path("t.json") + "'" + pair(), message);
  refused("model logits --tokens 1,2 --model '" + path("m") + "'", message);
  refused("activations capture --count 200 --quiet --out '" + path("a.npy") + "'" + pair(),
          "model rand-1l-64 on d: activation 0 holds ");
  EXPECT_FALSE(fs::exists(path("t.json")));
  EXPECT_FALSE(fs::exists(path("a.npy")));
}

TEST_F(OddModels, ADistributionForAnotherVocabularyIsRefused) {
  write("d.json", distribution(300));
  const std::string message =
      "distribution d: made for a vocabulary of 300 tokens, but model rand-1l-64 has 97";
  refused("estimate --target 3 --method mc --budget 10 --quiet" + pair(), message);
  refused("truth --samples 10 --out '" + path("t.json") + "'" + pair(), message);
  refused("activations capture --count 20 --out '" + path("a.npy") + "'" + pair(), message);
}

TEST_F(OddModels, AnotherEpsIsAnotherModel) {
  const std::string count = "truth --samples 512 --quiet --out '" + path("t.json") + "'" + pair();
  ASSERT_EQ(run(count).code, 0);
  set("model_name", "renamed");
  EXPECT_EQ(run(count).code, 0);  // finished already: the same model
  set("model_name", "rand-1l-64");
  set("eps", 0.5);
  refused(count, "the model's weights or its config.json differ");
}

TEST_F(OddModels, OtherFormatsAreNamed) {
  fs::create_directory(path("hf"));
  write("hf/config.json", R"({"architectures":["Olmo2ForCausalLM"],"model_type":"olmo2","hidden_size":64})");
  write("model.gguf", std::string("GGUF\3\0\0\0", 8));
  const std::string commands[] = {"model inspect ", "model logits --tokens 1 --model ",
                                  "estimate --target 1 --dist '" + path("d.json") + "' --model "};
  for (const std::string& command : commands) {
    refused(command + path("hf"),
            "hf/config.json: key \"model_type\": \"olmo2\" has no engine here: expected one of gpt2");
    refused(command + path("model.gguf"), "model.gguf: truncated at offset 8");
  }
  refused("model inspect '" + path("d.json") + "'",
          "a file: expected a GGUF file, or the folder with config.json");
}

TEST_F(OddModels, VerifyWantsSomethingToCompare) {
  write("m/reference.json", R"({"inputs":[],"token_ids":[],"argmax":[],"logits":[],"gap":[]})");
  refused("model verify '" + path("m") + "'", "expected at least one of each, there is nothing to compare");
  write("m/reference.json",
        R"({"inputs":[[4294967297]],"token_ids":[1],"argmax":[1],"logits":[[0]],"gap":[1]})");
  refused("model verify '" + path("m") + "'", "key \"inputs[0][0]\": expected a token id from 0 to 96");
  write("m/reference.json", R"({"inputs":[[1]],"token_ids":[1],"argmax":[1],"logits":[["x"]],"gap":[1]})");
  refused("model verify '" + path("m") + "'", "key \"logits[0][0]\": expected a number, found \"x\"");
}

}  // namespace
}  // namespace deeptail
