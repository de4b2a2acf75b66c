// Models, tokenizers and the way from activations to the vocabulary.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "core/json.h"
#include "core/memory.h"

namespace deeptail::c_api {

namespace {

const Tokenizer& tokenizer_of(const dt_model* model) {
  require(model, "model");
  if (!model->loaded.tokenizer)
    throw InputError("model {} has no tokenizer, so there are only token ids", model->loaded.name);
  return model->loaded.tokenizer->tokenizer;
}

std::string model_info(const LoadedModel& m) {
  OrderedJson tokenizer(nullptr);
  if (m.tokenizer)
    tokenizer = {{"sha256", m.tokenizer->sha256},
                 {"bos", m.tokenizer->tokenizer.bos()},
                 {"vocab_size", m.tokenizer->tokenizer.vocab_size()}};
  const ModelConfig& c = m.config();
  return json_text(OrderedJson{{"name", m.name},
                               {"folder", m.folder},
                               {"sha256", m.sha256},
                               {"family", c.family},
                               {"n_layers", c.n_layers},
                               {"d_model", c.d_model},
                               {"n_heads", c.n_heads},
                               {"d_head", c.d_head},
                               {"d_mlp", c.d_mlp},
                               {"n_ctx", c.n_ctx},
                               {"d_vocab", c.d_vocab},
                               {"tokenizer", tokenizer}});
}

Bos read_bos(std::string_view text) {
  if (text == "auto") return {};
  if (text == "none") return {.kind = Bos::Kind::none};
  Bos bos{.kind = Bos::Kind::token};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), bos.id);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size() || bos.id < 0)
    throw InputError("bos: expected auto, none or a token's id, found \"{}\"", printable(text));
  return bos;
}

TokenBatch batch_of(const dt_model* model, const std::int32_t* tokens, const std::uint32_t* lengths,
                    std::size_t n, std::size_t length) {
  require(model, "model");
  if (n > 0) require(tokens, "tokens");
  TokenBatch batch{{tokens, n * length}, length, {}};
  if (lengths != nullptr) batch.lengths = {lengths, n};
  check_tokens(model->loaded.config(), batch);
  return batch;
}

// In pieces, so that rows of the vocabulary need no second copy.
void run_logits(const LoadedModel& m, TokenBatch batch, ThreadPool& pool, float* out) {
  constexpr std::size_t kPiece = 1024;
  const std::size_t d = m.config().d_model, vocabulary = m.config().d_vocab;
  const std::size_t width = round_up(vocabulary, kPanel);
  AlignedVector<float> resid(std::min(kPiece, batch.size()) * d),
      rows(std::min(kPiece, batch.size()) * width);
  for (std::size_t first = 0; first < batch.size(); first += kPiece) {
    const std::size_t n = std::min(kPiece, batch.size() - first);
    final_residuals(m.transformer, batch.part(first, n), pool, {resid.data(), d});
    logits(m.head(), n, {resid.data(), d}, pool, {rows.data(), width});
    for (std::size_t i = 0; i < n; ++i)
      std::copy_n(rows.data() + i * width, vocabulary, out + (first + i) * vocabulary);
  }
}

std::vector<float> vector_or_none(const float* values, std::size_t n) {
  return values == nullptr ? std::vector<float>() : std::vector<float>(values, values + n);
}

void check_all_finite(std::span<const float> values, const char* name) {
  if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); }))
    throw InputError("{}: expected finite numbers, found NaN or infinity", name);
}

Head make_head(const dt_head_parts& p) {
  require(p.w_u, "w_u");
  if (p.d_model < 1 || p.d_vocab < 2)
    throw InputError("w_u: expected [d_model, d_vocab] with at least two tokens, found [{}, {}]", p.d_model,
                     p.d_vocab);
  const std::string_view norm = p.norm == nullptr ? "none" : p.norm;
  if (norm != "layer" && norm != "rms" && norm != "none")
    throw InputError("norm: expected layer, rms or none, found \"{}\"", printable(norm));
  const std::span<const float> w_u{p.w_u, p.d_model * p.d_vocab};
  check_all_finite(w_u, "w_u");
  std::vector<float> b_u = vector_or_none(p.b_u, p.d_vocab);
  check_all_finite(b_u, "b_u");
  Head head;
  head.w_u = PackedMatrix(w_u, p.d_model, p.d_vocab, b_u);
  if (norm == "none") return head;
  std::vector<float> w = vector_or_none(p.ln_w, p.d_model), b = vector_or_none(p.ln_b, p.d_model);
  check_all_finite(w, "ln_w");
  check_all_finite(b, "ln_b");
  if (w.empty()) w.assign(p.d_model, 1.0f);
  if (norm == "layer" && b.empty()) b.assign(p.d_model, 0.0f);
  if (norm == "rms" && !b.empty()) throw InputError("ln_b: an RMS norm has no bias");
  if (!(p.eps > 0.0) || !std::isfinite(p.eps))
    throw InputError("eps: expected a number above 0, found {}", p.eps);
  head.ln_final =
      LayerNorm{{w.begin(), w.end()}, {b.begin(), b.end()}, static_cast<float>(p.eps), norm == "layer"};
  return head;
}

}  // namespace

}  // namespace deeptail::c_api

using namespace deeptail;
using namespace deeptail::c_api;

extern "C" {

dt_status dt_model_load(const char* name, dt_model** out) {
  return guarded([&] {
    require(out, "out");
    *out = new dt_model{load_model(std::string(given_text(name, "model")))};
  });
}

void dt_model_free(dt_model* model) { delete model; }

dt_status dt_model_info(const dt_model* model, dt_text* out) {
  return guarded([&] {
    require(model, "model");
    give_text(model_info(model->loaded), out);
  });
}

dt_status dt_logits(const dt_model* model, const int32_t* tokens, const uint32_t* lengths, size_t n,
                    size_t length, size_t threads, float* out) {
  return guarded([&] {
    const TokenBatch batch = batch_of(model, tokens, lengths, n, length);
    ThreadPool pool(threads);
    run_logits(model->loaded, batch, pool, out);
  });
}

dt_status dt_residuals(const dt_model* model, const int32_t* tokens, const uint32_t* lengths, size_t n,
                       size_t length, size_t threads, float* out) {
  return guarded([&] {
    const TokenBatch batch = batch_of(model, tokens, lengths, n, length);
    ThreadPool pool(threads);
    final_residuals(model->loaded.transformer, batch, pool, {out, model->loaded.config().d_model});
  });
}

dt_status dt_encode(const dt_model* model, const char* text, size_t size, const char* bos, int32_t* ids,
                    size_t room, size_t* n) {
  return guarded([&] {
    require(n, "n");
    const Tokenizer& tokenizer = tokenizer_of(model);
    const std::vector<TokenId> found =
        tokenizer.encode_input({text, size}, read_bos(bos == nullptr ? "none" : bos));
    *n = found.size();
    std::copy_n(found.begin(), std::min(room, found.size()), ids);
  });
}

dt_status dt_decode(const dt_model* model, const int32_t* ids, size_t n, dt_text* out) {
  return guarded([&] {
    const Tokenizer& tokenizer = tokenizer_of(model);
    give_text(n == 1 ? tokenizer.bytes_of(ids[0]) : tokenizer.decode_all({ids, n}), out);
  });
}

dt_status dt_head_make(const dt_head_parts* parts, dt_head** out) {
  return guarded([&] {
    require(parts, "parts");
    require(out, "out");
    *out = new dt_head{make_head(sized_copy(parts))};
  });
}

void dt_head_free(dt_head* head) { delete head; }

}  // extern "C"
