// The kinds of law by the format of their files, and what all of them have.
#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>

#include "core/random.h"
#include "deeptail/law.h"
#include "inputs/distribution_json.h"

namespace deeptail {

namespace {

struct LawFile {
  const JsonNode& json;
  std::string_view text, where, folder;
};

struct LawKind {
  std::string_view format;
  std::unique_ptr<InputLaw> (*read)(const LawFile& file);
};

std::unique_ptr<InputLaw> read_token_tables(const LawFile& file) {
  return std::make_unique<TokenTables>(read_distribution(file.json, file.text, file.where, file.folder));
}

constexpr std::array kLawKinds = {LawKind{kTablesFormat, read_token_tables}};

}  // namespace

std::unique_ptr<InputLaw> parse_law(std::string_view text, std::string_view where, std::string_view folder) {
  const Json document = parse_json(text, where);
  const JsonNode json(document, where), format = json.at("format");
  std::vector<std::string> known;
  for (const LawKind& kind : kLawKinds) {
    if (kind.format == format.text()) return kind.read({json, text, where, folder});
    known.push_back(fmt::format("\"{}\"", kind.format));
  }
  format.fail_expected(fmt::format("{}", fmt::join(known, " or ")));
}

std::unique_ptr<InputLaw> load_law(const std::string& name_or_path) {
  const InputFile file(find_distribution(name_or_path));
  const std::filesystem::path folder = std::filesystem::path(file.path()).parent_path();
  return parse_law(file.text(), file.path(), folder.empty() ? "." : folder.string());
}

void Inputs::resize(std::size_t n, std::size_t longest) {
  max_length = longest;
  tokens.resize(n * longest);
  lengths.resize(n);
}

void InputLaw::redraw(std::span<const Redraw> redraws, std::span<std::uint64_t> parts, Inputs& inputs,
                      std::span<std::uint32_t> first_changed, ThreadPool& pool) const {
  for (const Redraw& r : redraws) parts[r.input * facts().n_parts + r.part] = r.number;
  const Inputs before = inputs;
  make(parts, inputs, pool);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto was = before.sequence(i), is = inputs.sequence(i);
    const auto [a, b] = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
    const bool same = a == was.end() && b == is.end();
    first_changed[i] = same ? kUnchanged : static_cast<std::uint32_t>(a - was.begin());
  }
}

std::vector<std::size_t> InputLaw::free_parts() const {
  std::vector<std::size_t> all(facts().n_parts);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

void sample_parts(const InputLaw& law, std::uint64_t seed, std::uint64_t first, ThreadPool& pool,
                  std::span<std::uint64_t> parts) {
  const RngKey key{seed, Stream::kInputs};
  const std::size_t n_parts = law.facts().n_parts, n = parts.size() / n_parts, block_size = 256;
  pool.for_each_block((n + block_size - 1) / block_size, [&](std::size_t block, std::size_t) {
    for (std::size_t i = block * block_size; i < std::min(n, (block + 1) * block_size); ++i)
      for (std::size_t part = 0; part < n_parts; part += 2) {
        const auto u = uniform64_pair(key, first + i, static_cast<std::uint32_t>(part / 2));
        std::copy_n(u.begin(), std::min<std::size_t>(2, n_parts - part),
                    parts.begin() + static_cast<std::ptrdiff_t>(i * n_parts + part));
      }
  });
}

Inputs sample_inputs(const InputLaw& law, std::uint64_t seed, std::uint64_t first, std::size_t n,
                     ThreadPool& pool) {
  std::vector<std::uint64_t> parts(n * law.facts().n_parts);
  sample_parts(law, seed, first, pool, parts);
  Inputs inputs;
  law.make(parts, inputs, pool);
  return inputs;
}

void check_varies(const InputLaw& law) {
  if (law.tables() != nullptr) return check_varies(*law.tables());
  if (law.free_parts().empty())
    throw InputError("law {}: all inputs are the same, so there is nothing to sample",
                     printable(law.facts().name));
}

void check_fits(const InputLaw& law, const ModelConfig& config, std::string_view tokenizer_sha256) {
  if (law.tables() != nullptr) return check_fits(*law.tables(), config, tokenizer_sha256);
  const LawFacts& facts = law.facts();
  if (facts.max_length > config.n_ctx)
    throw InputError("law {}: up to {} tokens, but model {} reads at most n_ctx = {}", printable(facts.name),
                     facts.max_length, config.model_name, config.n_ctx);
  if (facts.d_vocab != config.d_vocab)
    throw InputError("law {}: made for a vocabulary of {} tokens, but model {} has {}", printable(facts.name),
                     facts.d_vocab, config.model_name, config.d_vocab);
  check_tokenizer(fmt::format("law {}", printable(facts.name)), facts.tokenizer_sha256, config,
                  tokenizer_sha256);
}

}  // namespace deeptail
