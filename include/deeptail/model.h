// The transformer: blocks with causal attention, of the kinds that architecture.h tells apart.
//
// Sequences in, the residual of the last position out; from it logits, argmax and margins. Only what the last
// position needs is computed. Results are the same to the bit for any batch, thread count and order, and for
// a full run and a re-scored one (compute.h says why).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deeptail/architecture.h"
#include "deeptail/compute.h"
#include "deeptail/core.h"
#include "deeptail/target.h"
#include "deeptail/tensors.h"

namespace [[gnu::visibility("default")]] deeptail {

// TransformerLens's words; config.json uses them as keys.
struct ModelConfig {
  std::string model_name;
  std::size_t n_layers = 0, d_model = 0, n_heads = 0, d_head = 0, d_mlp = 0, n_ctx = 0, d_vocab = 0;
  float eps = 1e-5f;           // of every norm
  std::string tokenizer_file;  // relative to the model's folder; "" for none
  Architecture arch = {};
  std::string family = "transformer_lens";  // whose names and layouts the files have: a row of families/
  bool qkv_bias = true, o_bias = true, mlp_bias = true;  // which matrices have a bias, where families differ

  std::size_t d_attn() const { return n_heads * d_head; }
  std::size_t n_kv_heads() const { return n_heads / arch.kv_groups; }
  std::size_t d_kv() const { return n_kv_heads() * d_head; }
  float attention_scale(std::size_t layer) const;
};
ModelConfig parse_config(std::string_view json, std::string_view where);
// Of a model's folder or GGUF file: a model that config.json does not name has the folder's name, and one in a
// GGUF file the file's.
ModelConfig read_config(const std::string& folder);

// What results call a model by: a hash of its weights and of every value of its config that changes the
// logits. Neither its name nor the way config.json is written matters. (src/model/identity.cpp)
std::string model_sha256(const ModelConfig& config, const TensorMap& tensors);
std::string model_sha256(const std::string& folder);

// The way from a final residual to the vocabulary: all that the activation-space methods need of a model.
struct Head {
  std::optional<LayerNorm> ln_final;  // none: the activations count as already normalised
  PackedMatrix w_u;                   // [d_model, d_vocab], bias b_U (zeros where there is none)
  std::string owner = {};             // for messages: the model, or the file

  // A user's file with unembed.W_U [d_model, d_vocab], optionally unembed.b_U [d_vocab], and ln_final.w and
  // ln_final.b [d_model], both or neither. The norm's eps is 1e-5 unless a safetensors file says otherwise in
  // its metadata ("ln_final.eps": "1e-6"); with "ln_final.norm": "rms" there it is an RMS norm, without ln_final.b.
  static Head load(const std::string& path);

  std::size_t d_model() const { return w_u.k(); }
  std::size_t d_vocab() const { return w_u.n(); }
  // out: [n, d_model] = the residuals as W_U takes them. Throws InputError where they, or a logit of theirs,
  // are not finite: NaN would look like a token.
  void normalise(std::size_t n, ConstRows resid, Rows out) const;
};
// Writes what Head::load reads, in fp32 safetensors. The file appears whole or not at all.
void save_head(const std::string& path, const Head& head);

struct ModelWeights;   // src/model/weights.h
class TensorTaker;     // src/model/families/tensor_taker.h
struct PackedWeights;  // src/model/cpu/packed_weights.h

class Transformer {
 public:
  // A folder with config.json and weights in any form that read_tensors takes, or a GGUF file.
  static Transformer load(const std::string& folder);
  // The same from what was read there already, which is used up: its memory is given back piece by piece.
  static Transformer load(const std::string& folder, const ModelConfig& config, TensorMap&& tensors);
  static Transformer from_tensors(const ModelConfig& config, const TensorMap& tensors,
                                  const std::string& where);
  // No model, for whoever is asked for one and never runs it.
  static const Transformer& none();

  const ModelConfig& config() const { return config_; }
  const PackedWeights& packed() const { return *packed_; }  // as the CPU takes them
  ModelWeights raw_weights() const;  // as they are, for another backend: read once more, not kept
  // The model of its first n blocks: its final residuals are blocks.{n - 1}.hook_resid_post of this one.
  Transformer first_blocks(std::size_t n) const;
  const Head& head() const;  // lives as long as this model or a copy of it

 private:
  using ReadTensors = std::function<TensorMap()>;
  Transformer() = default;
  Transformer(ModelConfig config, TensorTaker&& taker, ReadTensors read, std::string where);

  ModelConfig config_;
  ReadTensors read_;
  std::string where_;
  std::shared_ptr<const PackedWeights> packed_;
};

// The folder of a model given by path, by name (dt-1l: in $DEEPTAIL_HOME/models, ./models, and beside the
// program), or as hf:ORG/NAME in the HuggingFace cache (hub.h). The path of a GGUF file stands for itself,
// wherever a folder is asked for.
std::string find_model(const std::string& name_or_path);
std::vector<std::string> list_models();  // folders and GGUF files found in those places

// Sequences, all of one length or each of its own.
struct TokenBatch {
  std::span<const TokenId> tokens;              // [size, length]
  std::size_t length = 0;                       // of all of them, or of the longest
  std::span<const std::uint32_t> lengths = {};  // [size]: how much of each row counts; empty: all of it
  std::size_t size() const { return length == 0 ? 0 : tokens.size() / length; }
  const TokenId* row(std::size_t i) const { return tokens.data() + i * length; }
  std::size_t length_of(std::size_t i) const { return lengths.empty() ? length : lengths[i]; }
  std::span<const TokenId> sequence(std::size_t i) const { return {row(i), length_of(i)}; }
  // Sequences [first, first + n).
  TokenBatch part(std::size_t first, std::size_t n) const {
    return {tokens.subspan(first * length, n * length), length,
            lengths.empty() ? lengths : lengths.subspan(first, n)};
  }
};
// Throws InputError for a token outside the vocabulary and for a length of 0 or beyond n_ctx.
void check_tokens(const ModelConfig& config, TokenBatch batch);

// First-layer rows of (position, token), computed once, for the positions and tokens an input distribution
// can hold. With them the forward pass skips the first layer's norm and projections. The values are those of
// the forward pass. Where positions are rotary a row depends on its token alone, and queries and keys in it
// have not turned yet.
class FirstLayerTable {
 public:
  // support[position]: the token ids that occur there.
  FirstLayerTable(const Transformer& model, std::span<const std::vector<TokenId>> support, ThreadPool& pool);

  // [row_width] floats, or null for a pair outside the support.
  const float* row(std::size_t position, TokenId token) const;
  // Mean and 1 / standard deviation that the first norm took out: [2], or null. The way back needs them.
  const float* statistics(std::size_t position, TokenId token) const;
  std::size_t bytes() const { return rows_.size() * sizeof(float); }
  static std::size_t bytes_of(const ModelConfig& config, std::span<const std::vector<TokenId>> support);

 private:
  static std::size_t row_width(const ModelConfig& config);
  std::size_t place(std::size_t position, TokenId token) const;
  std::int32_t index(std::size_t position, TokenId token) const;
  std::size_t d_vocab_, row_width_;
  bool by_position_;
  std::vector<std::int32_t> index_;  // [positions, or 1 where they do not matter; d_vocab]: row number, or -1
  AlignedVector<float> rows_;
  std::vector<float> statistics_;  // [rows, 2]
};

// out: [batch.size(), d_model] = blocks.{last}.hook_resid_post at the last position, before ln_final.
void final_residuals(const Transformer& model, TokenBatch batch, ThreadPool& pool, Rows out,
                     const FirstLayerTable* table = nullptr);

// Floating-point operations of one plain forward pass over `length` tokens with the logits of the last
// position, and of a changed copy's without logits, from its first changed position on.
double forward_flops(const ModelConfig& config, std::size_t length);
double rescoring_flops(const ModelConfig& config, std::size_t length, std::size_t first_changed);

// --- from the residual to the vocabulary (unembedding) ---

// out: [n, d_vocab].
void logits(const Head& head, std::size_t n, ConstRows resid, ThreadPool& pool, Rows out);
// The token said; ties go to the smallest id.
void argmax(const Head& head, std::size_t n, ConstRows resid, ThreadPool& pool, std::span<TokenId> out);

struct Margin {
  float value;                      // best target logit minus best other logit
  TokenId best_target, best_other;  // smallest ids that reach them

  // The event: the argmax is in the target. At a tie the smaller id wins.
  bool event() const { return value > 0.0f || (value == 0.0f && best_target < best_other); }
};
void margins(const Head& head, const Target& target, std::size_t n, ConstRows resid, ThreadPool& pool,
             std::span<Margin> out);

// Certified upper bounds of all logits in 8-bit integers, at a fraction of their cost (docs/performance.md).
// They hold for every activation; activations like those to come make them tighter, and say who usually wins.
class Screen {
 public:
  struct Tables;  // src/model/screen.h
  // resid: [n, d_model] before ln_final; n may be 0.
  Screen(const Head& head, std::size_t n, ConstRows resid, ThreadPool& pool);
  ~Screen();
  Screen(Screen&&) noexcept;

  const Tables& tables() const { return *tables_; }
  const std::vector<TokenId>& usual_winners() const;  // of the given activations, most frequent first

 private:
  std::unique_ptr<const Tables> tables_;
};

// Answers "is the margin at least this?" without always finishing: target columns first, then the usual
// winners, then everything that a screen leaves open, a row leaving as soon as one logit settles it. Decides
// exactly as `margins` does.
class MarginTest {
 public:
  struct Scratch;
  // usual_winners: ids that often beat the target, most frequent first; empty for the screen's, if there is
  // one. `head` and `screen` must outlive the test.
  MarginTest(const Head& head, const Target& target, std::span<const TokenId> usual_winners = {},
             const Screen* screen = nullptr);
  ~MarginTest();
  MarginTest(MarginTest&&) noexcept;

  struct ScratchDeleter {
    void operator()(Scratch* scratch) const;
  };
  using ScratchPtr = std::unique_ptr<Scratch, ScratchDeleter>;
  ScratchPtr make_scratch() const;  // one per thread

  // out[i] = margin(i) >= level. Returns the number of logits computed in full. Runs on the calling thread.
  std::uint64_t at_least(double level, std::size_t n, ConstRows resid, std::span<std::uint8_t> out,
                         Scratch& scratch) const;
  // out[i] = margin(i).event().
  std::uint64_t event(std::size_t n, ConstRows resid, std::span<std::uint8_t> out, Scratch& scratch) const;
  // The margins themselves, as `margins` has them to the last bit: of the other logits those are computed that the screen
  // leaves open above the usual winners; without a screen all. Likewise.
  std::uint64_t margins(std::size_t n, ConstRows resid, std::span<Margin> out, Scratch& scratch) const;

 private:
  struct Impl;
  struct Lead;
  struct Question;
  std::unique_ptr<Impl> impl_;
};

// --- re-scoring changed sequences ---

// Holds sequences in slots with the keys and values of all their positions, and scores changed copies of
// them: positions before the first change keep what they have; in the first layer only changed positions are
// computed.
class Rescorer {
 public:
  struct Proposal {
    std::size_t slot;
    const TokenId* tokens;   // [length]; compared with the slot's own tokens to find what changed
    std::size_t length = 0;  // 0: the longest that the slots have room for
  };
  // Decides on consecutive proposals [first, first + n) given resid: [n, d_model]; accept: [n]. Called by
  // worker threads, at most one call per worker at a time.
  using Decide = std::function<void(std::size_t first, std::size_t n, ConstRows resid,
                                    std::span<std::uint8_t> accept, std::size_t worker)>;

  // length: of the sequences, or of the longest. prefix: what all of them begin with, always, short of their last
  // position; it is computed and kept once.
  Rescorer(const Transformer& model, std::size_t n_slots, std::size_t length, ThreadPool& pool,
           std::span<const TokenId> prefix = {});
  ~Rescorer();

  // Fills slots [0, batch.size()) by a full run; out: [batch.size(), d_model], or no data for none.
  void reset(TokenBatch batch, Rows out = {});
  // Scores the proposals (each slot at most once) and lets the accepted ones replace their slots.
  void propose(std::span<const Proposal> proposals, const Decide& decide);
  // Slot `to` becomes a copy of slot `from`.
  void copy_slot(std::size_t from, std::size_t to);
  // Slot i becomes a copy of what slot parents[i] was (resampling). parents: [at most n_slots], ascending.
  void resample(std::span<const std::uint32_t> parents);

  std::span<const TokenId> tokens(std::size_t slot) const;
  std::size_t bytes() const;
  static std::size_t bytes_per_slot(const ModelConfig& config, std::size_t length, std::size_t n_prefix = 0);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// --- gradients ---

enum class Objective { kTargetLogit, kMargin };  // best target logit; best target minus best other

// values: [n] of the objective; gradients: [n, length, d_model] = d value / d (W_E[token] + W_pos[position]): the embedding, with rotary positions W_E[token].
struct GradientResult {
  std::vector<float> values;
  AlignedVector<float> gradients;
};
class GradientEngine {
 public:
  explicit GradientEngine(const Transformer& model);
  ~GradientEngine();
  // batch: of one length.
  GradientResult run(TokenBatch batch, const Target& target, Objective objective, ThreadPool& pool) const;

 private:
  friend class GradientPass;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One worker's gradients of the best target logit, at the positions that matter. A run allocates nothing, and
// looks at no other logit.
class GradientPass {
 public:
  struct Shape {
    std::size_t max_sequences, length;
    std::vector<std::size_t> positions;  // ascending: gradients are wanted there
  };
  // Sequences that are worked on together at their quickest. Results do not depend on it.
  static std::size_t good_size(const ModelConfig& config);

  // `engine` and `table` must outlive it.
  GradientPass(const GradientEngine& engine, const Target& target, Shape shape,
               const FirstLayerTable* table = nullptr);
  ~GradientPass();
  GradientPass(GradientPass&&) noexcept;

  // batch: n sequences of the given length, at most max_sequences. values: [n]; resid: [n, d_model], the
  // final residuals; gradients: [n, positions.size(), d_model] = d value / d (W_E[token] + W_pos[position]).
  void run(TokenBatch batch, float* values, Rows resid, float* gradients);

 private:
  friend class GradientEngine;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// --- checking a model against logits computed elsewhere ---

struct VerifyReport {
  std::size_t n_inputs = 0, n_logits = 0, argmax_equal = 0;
  std::size_t argmax_clear = 0, argmax_clear_equal = 0;  // inputs whose top gap exceeds 1e-3
  double max_error = 0.0, mean_error = 0.0;
};
// Where a model's reference lies: FOLDER/reference.json, or NAME.reference.json beside NAME.gguf.
std::string reference_path(const std::string& folder);
// Compares with the reference in a file; nothing when there is none.
std::optional<VerifyReport> verify_model(const Transformer& model, const std::string& path, ThreadPool& pool);
// A reference of what is computed here: for another machine, another build, or another program.
std::string make_reference(const Transformer& model, ThreadPool& pool);

}  // namespace deeptail
