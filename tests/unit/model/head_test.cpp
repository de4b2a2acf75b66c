// The unembedding as a file: what is written comes back, and every mistake has its own sentence.
#include "unit/model/fixture.h"
#include "unit/tensors/build_files.h"

namespace deeptail {
namespace {

using testing::expect_refused;
using testing::TempFolder;

// A small file by parts, one of which a test spoils.
struct HeadFile {
  std::vector<float> w_u = std::vector<float>(4 * 6, 0.5f), b_u = std::vector<float>(6, 0.25f);
  std::vector<float> ln_w = std::vector<float>(4, 1.0f), ln_b = std::vector<float>(4, 0.0f);
  std::vector<NamedValues> tensors = {{"unembed.W_U", {4, 6}, w_u},
                                      {"unembed.b_U", {6}, b_u},
                                      {"ln_final.w", {4}, ln_w},
                                      {"ln_final.b", {4}, ln_b}};
  std::map<std::string, std::string> metadata;
  TempFolder folder;

  void drop(const std::string& name) {
    std::erase_if(tensors, [&](const NamedValues& t) { return t.name == name; });
  }
  std::string write() const {
    write_safetensors(folder.path("w.safetensors"), tensors, metadata);
    return folder.path("w.safetensors");
  }
  void expect(const std::vector<std::string>& fragments) const {
    const std::string path = write();
    auto all = fragments;
    all.push_back(path);
    expect_refused([&] { Head::load(path); }, all);
  }
};

void expect_same_logits_when_read_back(const Fixture& fixture) {
  const ModelConfig& c = fixture.model.config();
  const TempFolder folder;
  save_head(folder.path("w.safetensors"), fixture.model.head());
  const Head head = Head::load(folder.path("w.safetensors"));
  EXPECT_EQ(head.d_model(), c.d_model);
  EXPECT_EQ(head.d_vocab(), c.d_vocab);
  EXPECT_EQ(head.ln_final->eps, c.eps);
  ThreadPool pool(1);
  const auto tokens = some_tokens(c, 20, 5, 3);
  const auto resid = residuals_of(fixture.model, {tokens, 5}, pool);
  AlignedVector<float> expected(20 * c.d_vocab), found(20 * c.d_vocab);
  logits(fixture.model.head(), 20, {resid.data(), c.d_model}, pool, {expected.data(), c.d_vocab});
  logits(head, 20, {resid.data(), c.d_model}, pool, {found.data(), c.d_vocab});
  EXPECT_EQ(expected, found);
}

TEST(Head, WrittenAndReadBackGivesTheSameLogits) {
  for (const char* name : {"rand-1l-64", "llama-a", "gpt2-a"})
    expect_same_logits_when_read_back(load_fixture(name));
}

// A model may overflow though all its weights are finite; what it then says is nothing.
TEST(Head, LogitsThatAreNotFiniteAreRefused) {
  HeadFile file;
  file.drop("ln_final.w");
  file.drop("ln_final.b");
  file.w_u.assign(file.w_u.size(), 1e30f);
  file.w_u[0] = -1e30f;
  const Head head = Head::load(file.write());
  ThreadPool pool(2);
  const auto run = [&](std::vector<float> row) {
    std::vector<float> rows(200 * 4, 1.0f), all(200 * 6);
    std::copy(row.begin(), row.end(), rows.begin() + 150 * 4);
    const ConstRows resid{rows.data(), 4};
    const std::string message =
        head.owner +
        ": NaN or infinite logits for an input, though all weights are finite: its numbers grow "
        "beyond float32, so there is no token that it says";
    std::vector<TokenId> said(200);
    std::vector<Margin> found(200);
    std::vector<std::uint8_t> event(200);
    const Target target({1}, head);
    const MarginTest test(head, target);
    const auto scratch = test.make_scratch();
    expect_refused([&] { argmax(head, 200, resid, pool, said); }, {message});
    expect_refused([&] { logits(head, 200, resid, pool, {all.data(), 6}); }, {message});
    expect_refused([&] { margins(head, target, 200, resid, pool, found); }, {message});
    expect_refused([&] { test.event(200, resid, event, *scratch); }, {message});
  };
  run({NAN, 0, 0, 0});
  run({0, 0, INFINITY, 0});
  run({0, 1e10f, 0, 0});              // infinite logits
  run({1e10f, 0, 0, -1e10f});         // NaN
  std::vector<float> large(4, 5e7f);  // 2e38 is a number
  std::vector<TokenId> said(1);
  argmax(head, 1, {large.data(), 4}, pool, said);
  EXPECT_EQ(said[0], 1);
}

TEST(Head, WithoutNormTheActivationsCountAsNormalised) {
  HeadFile file;
  file.drop("ln_final.w");
  file.drop("ln_final.b");
  file.drop("unembed.b_U");
  const Head head = Head::load(file.write());
  EXPECT_FALSE(head.ln_final.has_value());
  ThreadPool pool(1);
  const std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> out(6);
  logits(head, 1, {x.data(), 4}, pool, {out.data(), 6});
  EXPECT_EQ(out, std::vector<float>(6, 5.0f));
}

TEST(Head, EpsComesFromTheMetadata) {
  HeadFile file;
  EXPECT_EQ(Head::load(file.write()).ln_final->eps, 1e-5f);
  file.metadata = {{"ln_final.eps", "1e-6"}};
  EXPECT_EQ(Head::load(file.write()).ln_final->eps, 1e-6f);
  for (const char* bad : {"", "tiny", "0", "-1e-5", "inf", "1e-5 "}) {
    file.metadata = {{"ln_final.eps", bad}};
    file.expect({"ln_final.eps", "expected a positive number", bad});
  }
}

TEST(Head, AnRmsNormHasNoBias) {
  HeadFile file;
  file.metadata = {{"ln_final.norm", "rms"}};
  file.expect({"an RMS norm: expected ln_final.w without ln_final.b"});
  file.drop("ln_final.b");
  EXPECT_FALSE(Head::load(file.write()).ln_final->centred);
  file.metadata = {{"ln_final.norm", "batch"}};
  file.expect({"ln_final.norm: expected layer or rms, found \"batch\""});
}

TEST(Head, MissingAndExtraTensors) {
  HeadFile no_weight, half_norm, other_half, extra;
  no_weight.drop("unembed.W_U");
  no_weight.expect({"tensor unembed.W_U is missing"});
  half_norm.drop("ln_final.b");
  half_norm.expect({"both ln_final.w and ln_final.b or neither, found only ln_final.w"});
  other_half.drop("ln_final.w");
  other_half.expect({"found only ln_final.b"});
  extra.tensors.push_back({"embed.W_E", {6}, extra.b_u});
  extra.expect({"tensor embed.W_E is not part of an unembedding"});
}

TEST(Head, WrongShapes) {
  HeadFile flat, one_token, bias, norm;
  flat.tensors[0].shape = {24};
  flat.expect({"unembed.W_U", "expected shape [d_model, d_vocab]", "found [24]"});
  one_token.tensors[0].shape = {24, 1};
  one_token.expect({"at least two tokens", "found [24, 1]"});
  bias.tensors[1].shape = {1, 6};
  bias.expect({"unembed.b_U", "expected shape [6] (d_vocab of unembed.W_U), found [1, 6]"});
  norm.tensors[3] = {"ln_final.b", {6}, norm.b_u};
  norm.expect({"ln_final.b", "expected shape [4] (d_model of unembed.W_U), found [6]"});
}

TEST(Head, NotFinite) {
  for (const float bad : {NAN, INFINITY}) {
    HeadFile w_u, b_u, ln;
    w_u.w_u[7] = bad;
    w_u.expect({"unembed.W_U", "expected finite values", "[1, 1]"});
    b_u.b_u[5] = bad;
    b_u.expect({"unembed.b_U", "expected finite values", "[5]"});
    ln.ln_w[0] = bad;
    ln.expect({"ln_final.w", "expected finite values", "[0]"});
  }
}

TEST(Head, NoFileAndNoTensors) {
  EXPECT_THROW(Head::load("no-such-file.safetensors"), InputError);
  const TempFolder folder;
  expect_refused([&] { Head::load(folder.write("w.safetensors", testing::npy_file("{}", ""))); },
                 {"w.safetensors"});
}

}  // namespace
}  // namespace deeptail
