// Laws of inputs: which token sequences a model is asked about, and how likely each is.
//
// An input is a fixed function of independent uniform numbers, its parts. Drawing some of them anew, chosen
// without looking at the input, leaves the law as it is. So every law has moves, and splitting needs no more
// of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/core.h"
#include "deeptail/inputs.h"
#include "deeptail/model.h"

namespace [[gnu::visibility("default")]] deeptail {

// Inputs, each of its own length.
struct Inputs {
  std::size_t max_length = 0;
  std::vector<TokenId> tokens = {};         // [n, max_length]; 0 beyond an input's length
  std::vector<std::uint32_t> lengths = {};  // [n], at least 1 each

  std::size_t size() const { return lengths.size(); }
  void resize(std::size_t n, std::size_t longest);
  TokenBatch batch() const { return {tokens, max_length, lengths}; }
  std::span<TokenId> row(std::size_t i) { return std::span(tokens).subspan(i * max_length, max_length); }
  std::span<const TokenId> sequence(std::size_t i) const { return batch().sequence(i); }
};

struct LawFacts {
  std::string name;
  std::string sha256;  // of all that the law was made from; goes into every result
  std::size_t d_vocab = 0;
  std::string tokenizer_sha256 = {};  // of the tokenizer.json that the ids belong to; "": unknown
  std::size_t n_parts = 0;            // numbers that an input is made from
  std::size_t max_length = 0;         // of an input
  std::string kind = "tables", description = {};
  std::string summary = {};  // what it holds, in a few words
};

// A part of one of many inputs that is drawn anew.
struct Redraw {
  std::uint32_t input, part;
  std::uint64_t number;
};
inline constexpr std::uint32_t kUnchanged = 0xffffffff;

class InputLaw {
 public:
  virtual ~InputLaw() = default;
  virtual const LawFacts& facts() const = 0;
  // parts: [n, n_parts]. out: n inputs; input i depends on its own parts alone.
  virtual void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const = 0;
  // Redraws parts, one after another. parts: [n, n_parts], inputs: made from them; both become what they are
  // then. first_changed: [n], the earliest position that a redraw changed, be it undone by a later one, or
  // kUnchanged. As make() says unless a law knows a quicker way.
  virtual void redraw(std::span<const Redraw> redraws, std::span<std::uint64_t> parts, Inputs& inputs,
                      std::span<std::uint32_t> first_changed, ThreadPool& pool) const;
  // The earliest position whose token this part can change.
  virtual std::size_t first_position(std::size_t part) const = 0;
  // The parts that can change an input at all, ascending.
  virtual std::vector<std::size_t> free_parts() const;
  // The tables of a law whose positions are independent draws from them, else null. Gradients of one-hot
  // inputs, first-layer rows and the CUDA backend need them.
  virtual const Distribution* tables() const { return nullptr; }
};

// Independent positions: part i is the number that position i is drawn with.
class TokenTables final : public InputLaw {
 public:
  explicit TokenTables(Distribution dist);
  const LawFacts& facts() const override { return facts_; }
  void make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const override;
  void redraw(std::span<const Redraw> redraws, std::span<std::uint64_t> parts, Inputs& inputs,
              std::span<std::uint32_t> first_changed, ThreadPool& pool) const override;
  std::size_t first_position(std::size_t part) const override { return part; }
  std::vector<std::size_t> free_parts() const override { return free_positions(dist_); }
  const Distribution* tables() const override { return &dist_; }

 private:
  Distribution dist_;
  LawFacts facts_;
};

// By name or path, as find_distribution looks for it; the file's "format" says which kind of law it is.
std::unique_ptr<InputLaw> load_law(const std::string& name_or_path);
// folder: where files that the text names are looked for; "": such names are refused.
std::unique_ptr<InputLaw> parse_law(std::string_view json, std::string_view where,
                                    std::string_view folder = "");

// The parts of samples [first, first + n) of a seed: [n, n_parts]. Always the same, whoever asks and in
// whatever order.
void sample_parts(const InputLaw& law, std::uint64_t seed, std::uint64_t first, ThreadPool& pool,
                  std::span<std::uint64_t> parts);
// Samples [first, first + n); of tables those of sample_range.
Inputs sample_inputs(const InputLaw& law, std::uint64_t seed, std::uint64_t first, std::size_t n,
                     ThreadPool& pool);

// Tokens that every input of the law begins with, short of its last one: a model computes them once for all.
std::size_t constant_prefix_length(const InputLaw& law);
std::vector<TokenId> constant_prefix(const InputLaw& law, ThreadPool& pool);

// Throws InputError when all inputs are the same.
void check_varies(const InputLaw& law);
// Throws InputError unless the model can read these inputs, as for a Distribution.
void check_fits(const InputLaw& law, const ModelConfig& config, std::string_view tokenizer_sha256);

}  // namespace deeptail
