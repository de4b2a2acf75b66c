#include "inputs/template_law.h"

#include <algorithm>

#include "core/nearest.h"

namespace deeptail {

TemplateLaw::TemplateLaw(LawFacts facts, Tokenizer tokenizer, std::vector<TokenId> bos,
                         std::vector<TemplatePiece> pieces, std::vector<std::unique_ptr<TemplateSlot>> slots)
    : facts_(std::move(facts)),
      tokenizer_(std::move(tokenizer)),
      bos_(std::move(bos)),
      pieces_(std::move(pieces)) {
  for (auto& source : slots) {
    const std::size_t first_part = facts_.n_parts;
    facts_.n_parts += source->n_parts();
    slots_.push_back({std::move(source), first_part});
  }
  // Tokens of the pieces alone, and one more wherever two of them meet: a text that is cut into more tokens when it
  // stands between others is refused when it comes.
  facts_.max_length = bos_.size();
  for (const TemplatePiece& piece : pieces_)
    facts_.max_length +=
        1 + (piece.slot == TemplatePiece::kIsText ? tokenizer_.encode(piece.text).size()
                                                  : slots_[piece.slot].source->most_tokens());
  for (std::size_t part = 0; part < facts_.n_parts; ++part)
    if (slot_of(part).n_values() != 1) free_.push_back(part);
  constexpr double kFewInputs = 4096;
  const bool looks_at_all = n_inputs() <= kFewInputs;
  if (looks_at_all) facts_.max_length = 2 * facts_.max_length + 8;  // until it is known
  first_.assign(facts_.n_parts, facts_.max_length);
  ThreadPool pool;
  if (looks_at_all)
    look_at_all(pool);
  else
    look_at_some(pool);
  facts_.summary = fmt::format("{} slot{}, up to {} tokens", slots_.size(), slots_.size() == 1 ? "" : "s",
                               facts_.max_length);
}

const TemplateSlot& TemplateLaw::slot_of(std::size_t part) const {
  std::size_t i = slots_.size() - 1;
  while (slots_[i].first_part > part) --i;
  return *slots_[i].source;
}

void TemplateLaw::make(std::span<const std::uint64_t> parts, Inputs& out, ThreadPool& pool) const {
  const std::size_t n_parts = facts_.n_parts, n = parts.size() / n_parts, block_size = 64;
  std::vector<SlotValues> values(slots_.size());
  std::vector<std::uint64_t> own;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const std::size_t count = slots_[s].source->n_parts();
    own.resize(n * count);
    for (std::size_t i = 0; i < n; ++i)
      std::copy_n(parts.begin() + static_cast<std::ptrdiff_t>(i * n_parts + slots_[s].first_part), count,
                  own.begin() + static_cast<std::ptrdiff_t>(i * count));
    slots_[s].source->fill(own, values[s], pool);
  }
  out.resize(n, facts_.max_length);
  pool.for_each_block((n + block_size - 1) / block_size, [&](std::size_t block, std::size_t) {
    for (std::size_t i = block * block_size; i < std::min(n, (block + 1) * block_size); ++i) {
      const std::vector<TokenId> tokens = tokens_of(i, values);
      check_made(tokens);
      std::fill(std::copy(tokens.begin(), tokens.end(), out.row(i).begin()), out.row(i).end(), 0);
      out.lengths[i] = static_cast<std::uint32_t>(tokens.size());
    }
  });
}

std::vector<TokenId> TemplateLaw::tokens_of(std::size_t input, std::span<const SlotValues> values) const {
  std::vector<TokenId> out = bos_;
  const auto append = [&](const std::vector<TokenId>& tokens) {
    out.insert(out.end(), tokens.begin(), tokens.end());
  };
  std::string text;
  for (const TemplatePiece& piece : pieces_) {
    if (piece.slot == TemplatePiece::kIsText) {
      text += piece.text;
    } else if (!slots_[piece.slot].source->is_tokens()) {
      text += values[piece.slot].texts[input];
    } else {
      append(tokenizer_.encode(text));
      append(values[piece.slot].tokens[input]);
      text.clear();
    }
  }
  append(tokenizer_.encode(text));
  return out;
}

// What was promised of all inputs when only some had been seen.
void TemplateLaw::check_made(std::span<const TokenId> tokens) const {
  const auto fail = [&](std::string_view what) {
    throw InputError("law {}: the input \"{}\" {}", printable(facts_.name),
                     printable(tokenizer_.decode_all(tokens)), what);
  };
  if (tokens.empty()) fail("is empty, and no token goes before it");
  if (tokens.size() > facts_.max_length)
    fail(fmt::format("has {} tokens; expected at most {}, as many as its pieces have alone", tokens.size(),
                     facts_.max_length));
  for (const TokenId id : tokens)
    if (static_cast<std::size_t>(id) >= facts_.d_vocab)
      fail(fmt::format("holds token {}, which the model has not", id));
  if (!std::equal(prefix_.begin(), prefix_.end(), tokens.begin(),
                  tokens.begin() + static_cast<std::ptrdiff_t>(std::min(prefix_.size(), tokens.size()))))
    fail(
        "begins with other tokens than all inputs that were looked at; end the text before the first slot "
        "with a space");
}

std::unique_ptr<InputLaw> read_template_law(LawReader& reader, const JsonNode& json) {
  expect_keys(json, {"format", "name", "description", "kind", "bos", "text", "slots"});
  const NamedTokenizer& tokenizer = reader.tokenizer(json);
  TemplateText text = parse_template(json.at("text").text(), json.at("text").where());
  const JsonNode given = json.at("slots");
  given.expect_object();
  std::vector<std::string> known;
  for (const auto& [name, value] : given.value().items()) {
    known.push_back(name);
    if (std::find(text.names.begin(), text.names.end(), name) == text.names.end())
      throw InputError("{}: the text has no slot {{{}}}{}", given.where(), printable(name),
                       did_you_mean(name, text.names));
  }
  std::vector<std::unique_ptr<TemplateSlot>> slots;
  for (const std::string& name : text.names) {
    if (!given.has(name.c_str()))
      throw InputError("{}: the slot {{{}}} of the text is missing{}", given.where(), printable(name),
                       did_you_mean(name, known));
    slots.push_back(read_slot(reader, given.at(name.c_str())));
  }
  if (slots.empty())
    throw InputError("{}: a template has at least one slot, such as {{name}}", json.at("text").where());
  const std::vector<TokenId> bos =
      tokenizer.tokenizer.encode_input("", read_law_bos(json, reader.subject(json).d_vocab));
  reader.check_tokens(bos, json.where());
  return std::make_unique<TemplateLaw>(reader.facts(json, "template"), tokenizer.tokenizer, bos,
                                       std::move(text.pieces), std::move(slots));
}

}  // namespace deeptail
