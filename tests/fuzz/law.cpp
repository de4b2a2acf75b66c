// Any bytes as a law of text: either refused with an InputError, or inputs of its own lengths and vocabulary. There are
// no files, and the tokenizer has a token for every byte.
#include <cstdlib>

#include "core/json.h"
#include "deeptail/load.h"
#include "text/byte_alphabet.h"

namespace {

deeptail::LawSubject byte_subject() {
  deeptail::Json vocab = deeptail::Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[deeptail::alphabet_character(static_cast<unsigned char>(byte))] = byte;
  const deeptail::Json document = {
      {"added_tokens", deeptail::Json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", deeptail::Json::array()}}}};
  return {.model_name = "bytes",
          .folder = "no such folder",
          .d_vocab = 256,
          .tokenizer = deeptail::NamedTokenizer{
              deeptail::Tokenizer::parse(deeptail::json_text(document), "bytes"), "sha256"}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const deeptail::LawSubject subject = byte_subject();
  static deeptail::ThreadPool pool(1);
  if (size > 4096) return 0;  // longer texts only take longer
  try {
    const auto law = deeptail::parse_law({reinterpret_cast<const char*>(data), size}, "fuzz", "", &subject);
    const deeptail::LawFacts& facts = law->facts();
    if (facts.n_parts == 0 || facts.n_parts > 1000 || facts.max_length > 100'000) return 0;
    const deeptail::Inputs some = deeptail::sample_inputs(*law, 1, 0, 5, pool);
    const auto prefix = deeptail::constant_prefix(*law, pool);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto tokens = some.sequence(i);
      if (tokens.empty() || tokens.size() > facts.max_length || tokens.size() < prefix.size()) std::abort();
      if (!std::equal(prefix.begin(), prefix.end(), tokens.begin())) std::abort();
      for (const deeptail::TokenId id : tokens)
        if (id < 0 || static_cast<std::size_t>(id) >= facts.d_vocab) std::abort();
    }
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
