#include "cli/dist_laws.h"

#include <algorithm>
#include <filesystem>

#include "cli/output.h"
#include "cli/tokens.h"
#include "core/json_node.h"
#include "core/screen_text.h"
#include "core/tell.h"
#include "deeptail/load.h"

namespace deeptail::cli {

namespace {

constexpr std::size_t kShownSamples = 3, kSampledAtOnce = 1024;

struct ModelLaw {
  LawSubject subject;
  std::unique_ptr<InputLaw> law;
  const Tokenizer& tokenizer() const { return subject.tokenizer->tokenizer; }
  std::string text(std::span<const TokenId> tokens) const { return tokenizer().decode_all(tokens); }
};

ModelLaw law_for(const std::string& name, const std::string& model) {
  if (model.empty())
    throw InputError(
        "{}: its prompts are text, which the tokenizer of a model makes tokens of; name one with --model",
        screen_text(find_distribution(name)));
  ModelLaw found{.subject = law_subject(model), .law = nullptr};
  found.law = load_law(name, found.subject);
  check_fits(*found.law, read_config(found.subject.folder),
             found.subject.tokenizer ? found.subject.tokenizer->sha256 : "");
  return found;
}

}  // namespace

bool is_text_law(const std::string& name_or_path) {
  try {
    const InputFile file(find_distribution(name_or_path));
    const Json document = parse_json(file.text(), file.path());
    return document.is_object() && document.value("format", Json()) == "deeptail-law-1";
  } catch (const InputError&) {
    return false;
  }
}

void show_law(const std::string& name, const std::string& model, bool json) {
  const ModelLaw m = law_for(name, model);
  const LawFacts& facts = m.law->facts();
  ThreadPool pool;
  const std::vector<TokenId> prefix = constant_prefix(*m.law, pool);
  const Inputs some = sample_inputs(*m.law, 1, 0, kShownSamples, pool);
  if (json) {
    OrderedJson out = {{"name", facts.name},
                       {"description", facts.description},
                       {"kind", facts.kind},
                       {"summary", facts.summary},
                       {"n_parts", facts.n_parts},
                       {"max_length", facts.max_length},
                       {"d_vocab", facts.d_vocab},
                       {"sha256", facts.sha256},
                       {"tokenizer_sha256", facts.tokenizer_sha256},
                       {"constant_prefix", prefix},
                       {"samples", OrderedJson::array()}};
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto tokens = some.sequence(i);
      out["samples"].push_back(
          {{"tokens", std::vector<TokenId>(tokens.begin(), tokens.end())}, {"text", m.text(tokens)}});
    }
    return print_json(out);
  }
  fmt::print("{}: {}\n", screen_text(facts.name),
             screen_text(facts.description.empty() ? facts.kind : facts.description, 200));
  fmt::print("{}: {}; made from {} number{}\n", facts.kind, screen_text(facts.summary), facts.n_parts,
             facts.n_parts == 1 ? "" : "s");
  fmt::print("sha256 {}\ntokenizer {}\n", facts.sha256, facts.tokenizer_sha256);
  if (!prefix.empty())
    fmt::print("all begin with {} token{}: {}\n", prefix.size(), prefix.size() == 1 ? "" : "s",
               quoted_text(m.text(prefix)));
  fmt::print("\n");
  for (std::size_t i = 0; i < some.size(); ++i)
    fmt::print("  {}\n", screen_text(m.text(some.sequence(i)), kAnyWidth));
}

void print_law_samples(const LawSamples& o) {
  const ModelLaw m = law_for(o.name, o.model);
  ThreadPool pool;
  for (std::uint64_t done = 0; done < o.count; done += kSampledAtOnce) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kSampledAtOnce, o.count - done));
    const Inputs inputs = sample_inputs(*m.law, o.seed, o.first + done, n, pool);
    for (std::size_t i = 0; i < n; ++i) {
      const auto tokens = inputs.sequence(i);
      if (o.text && o.json)
        print_json(
            {{"tokens", std::vector<TokenId>(tokens.begin(), tokens.end())}, {"text", m.text(tokens)}});
      else if (o.text)
        fmt::print("{}\n", screen_text(m.text(tokens), kAnyWidth));
      else
        fmt::print("{}{}{}\n", o.json ? "[" : "", fmt::join(tokens, o.json ? "," : " "), o.json ? "]" : "");
    }
  }
}

void check_law(const std::string& name, const std::string& model) {
  if (!is_text_law(name)) {
    const Distribution dist = load_distribution(name);
    if (!model.empty()) {
      const std::string folder = find_model(model);
      const auto tokenizer = tokenizer_of(read_config(folder), folder);
      check_fits(dist, read_config(folder), tokenizer ? tokenizer->sha256 : "");
    }
    fmt::print("{}: tables of tokens, {} positions of {} tables\n", screen_text(dist.name), dist.length(),
               dist.tables.size());
    return;
  }
  const ModelLaw m = law_for(name, model);
  const LawFacts& facts = m.law->facts();
  ThreadPool pool;
  const Inputs one = sample_inputs(*m.law, 1, 0, 1, pool);
  const std::vector<TokenId>& bos = m.tokenizer().bos();
  if (bos.size() == 1 && one.lengths[0] > 1 && one.tokens[0] == bos[0] && one.tokens[1] == bos[0])
    tell(stderr,
         "deeptail: the text begins with {}, and the tokenizer puts another before it; \"bos\": \"none\": "
         "only one\n",
         quoted_text(m.tokenizer().bytes_of(bos[0])));
  fmt::print("{}: {}, {}\n", screen_text(facts.name), facts.kind, screen_text(facts.summary));
}

void list_law(const std::string& path) {
  const InputFile file(path);
  const Json document = parse_json(file.text(), file.path());
  const JsonNode json(document, file.path());
  const std::string name =
      json.has("name") ? json.at("name").text() : std::filesystem::path(path).stem().string();
  fmt::print("{:10} {:>6} {:>7}  {}\n", screen_text(name), screen_text(json.at("kind").text()), "",
             screen_text(json.has("description") ? json.at("description").text() : ""));
}

}  // namespace deeptail::cli
