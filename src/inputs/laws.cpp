// The kinds of law by the format of their files, and what all of them have.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "core/random.h"
#include "deeptail/law.h"
#include "inputs/distribution_json.h"
#include "inputs/law_reader.h"

namespace deeptail {

std::unique_ptr<InputLaw> parse_law(std::string_view text, std::string_view where, std::string_view folder,
                                    const LawSubject* subject, std::size_t depth) {
  const Json document = parse_json(text, where);
  const JsonNode json(document, where), format = json.at("format");
  if (format.text() == kTablesFormat)
    return std::make_unique<TokenTables>(read_distribution(json, text, where, folder));
  if (format.text() == kLawFormat) return LawReader(folder, subject, depth).read(json);
  format.fail_expected(fmt::format("\"{}\" or \"{}\"", kTablesFormat, kLawFormat));
}

std::unique_ptr<InputLaw> parse_law(std::string_view text, std::string_view where, std::string_view folder) {
  return parse_law(text, where, folder, nullptr);
}

namespace {

std::unique_ptr<InputLaw> load_law_for(const std::string& name_or_path, const LawSubject* subject) {
  const InputFile file(find_distribution(name_or_path));
  const std::filesystem::path folder = std::filesystem::path(file.path()).parent_path();
  return parse_law(file.text(), file.path(), folder.empty() ? "." : folder.string(), subject);
}

}  // namespace

std::unique_ptr<InputLaw> load_law(const std::string& name_or_path) {
  return load_law_for(name_or_path, nullptr);
}

std::unique_ptr<InputLaw> load_law(const std::string& name_or_path, const LawSubject& subject) {
  return load_law_for(name_or_path, &subject);
}

void Inputs::resize(std::size_t n, std::size_t longest) {
  max_length = longest;
  tokens.resize(n * longest);
  lengths.resize(n);
}

void InputLaw::redraw(std::span<const Redraw> redraws, std::span<std::uint64_t> parts, Inputs& inputs,
                      std::span<std::uint32_t> first_changed, ThreadPool& pool) const {
  const std::size_t n_parts = facts().n_parts;
  std::fill(first_changed.begin(), first_changed.end(), kUnchanged);
  std::vector<std::uint32_t> redrawn;
  for (const Redraw& r : redraws) {
    parts[r.input * n_parts + r.part] = r.number;
    redrawn.push_back(r.input);
  }
  std::sort(redrawn.begin(), redrawn.end());
  redrawn.erase(std::unique(redrawn.begin(), redrawn.end()), redrawn.end());
  std::vector<std::uint64_t> their_parts;
  for (const std::uint32_t i : redrawn) {
    const auto own = parts.subspan(i * n_parts, n_parts);
    their_parts.insert(their_parts.end(), own.begin(), own.end());
  }
  Inputs made;
  make(their_parts, made, pool);
  for (std::size_t k = 0; k < redrawn.size(); ++k) {
    const std::uint32_t i = redrawn[k];
    const auto was = inputs.sequence(i), is = made.sequence(k);
    const auto [a, b] = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
    if (a == was.end() && b == is.end()) continue;
    first_changed[i] = static_cast<std::uint32_t>(a - was.begin());
    std::copy(made.row(k).begin(), made.row(k).end(), inputs.row(i).begin());
    inputs.lengths[i] = made.lengths[k];
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
