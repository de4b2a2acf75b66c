// deeptail dist build | from-text: distributions for a tokenizer
#include "cli/dist_build.h"

#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/tokens.h"
#include "core/json.h"
#include "core/progress.h"
#include "core/screen_text.h"
#include "core/write_file.h"
#include "deeptail/build_distribution.h"

namespace deeptail::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongest = 1 << 16, kLargestTop = 1 << 24;

struct BuildOptions {
  std::string name, tokenizer, counts, out, bos = "auto", text, description;
  std::vector<std::string> corpora;
  std::size_t length = 32, top = 0, threads = 0;
  bool quiet = false;
};

// What goes before every input: --bos, what the tokenizer says, or the token that is called so.
TokenId bos_of(const BuildOptions& o, const NamedTokenizer& tokenizer) {
  const Bos bos = parse_bos(o.bos);
  if (bos.kind == Bos::Kind::none) return -1;
  if (bos.kind == Bos::Kind::token) {
    if (static_cast<std::size_t>(bos.id) >= tokenizer.tokenizer.vocab_size())
      throw InputError("--bos {}: the tokenizer has {} tokens", bos.id, tokenizer.tokenizer.vocab_size());
    return bos.id;
  }
  if (tokenizer.tokenizer.bos().size() == 1) return tokenizer.tokenizer.bos().front();
  for (const char* name : {"<|BOS|>", "<s>", "<|begin_of_text|>", "<bos>", "<|endoftext|>"})
    if (const auto id = tokenizer.tokenizer.id_of(name)) return *id;
  throw InputError("--bos auto: the tokenizer names no token that begins a text; give its id, or none");
}

std::vector<std::uint64_t> counted(const BuildOptions& o, const BuilderVocabulary& vocabulary,
                                   const std::string& path) {
  const InputFile text(path);
  ThreadPool pool(o.threads);
  catch_interrupts();
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet),
                      {.label = fmt::format("counting {}", path), .unit = "pieces"});
  auto counts =
      count_tokens(vocabulary.tokenizer, vocabulary.d_vocab, text.text(), pool, [&](const Progress& p) {
        meter.update(p.done);
        return !interrupted();
      });
  meter.clear();
  if (interrupted()) throw Stopped(kInterrupted, "interrupted; nothing was written");
  return counts;
}

// --corpus english=FILE, or a file alone where the distribution is made from one corpus.
TokenCounts counts_of(const BuildOptions& o, const BuilderVocabulary& vocabulary) {
  if (!o.counts.empty() && !o.corpora.empty()) throw InputError("expected --counts or --corpus, found both");
  if (!o.counts.empty()) return parse_token_counts(InputFile(o.counts).text(), o.counts);
  const std::vector<std::string> needed = corpora_of(o.name);
  TokenCounts counts{.tokenizer_sha256 = vocabulary.sha256, .corpora = {}};
  for (const std::string& given : o.corpora) {
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos && needed.size() != 1)
      throw InputError("--corpus {}: expected {}=FILE, since {} is made from {}", screen_text(given),
                       needed.empty() ? "NAME" : needed.front(), o.name,
                       needed.empty() ? "no text" : "several corpora");
    const std::string name = equals == std::string::npos ? needed.front() : given.substr(0, equals);
    counts.corpora[name] =
        counted(o, vocabulary, equals == std::string::npos ? given : given.substr(equals + 1));
  }
  for (const std::string& corpus : needed)
    if (!counts.corpora.contains(corpus))
      throw InputError("{} is made from counts of {} text: expected --counts FILE or --corpus {}=FILE",
                       o.name, corpus, corpus);
  return counts;
}

// Reads what was written as everybody will, so that no file is left that would be refused.
void write_distribution(const std::string& path, const std::string& text) {
  const Distribution dist = parse_distribution(text, path);
  write_file(path, text);
  std::size_t tokens = 0;
  for (const TokenTable& table : dist.tables) tokens = std::max(tokens, table.size());
  fmt::print("{}: {}, {} positions, the largest table has {} token{}\n", screen_text(path),
             screen_text(dist.name), dist.length(), tokens, tokens == 1 ? "" : "s");
}

void build(const BuildOptions& o) {
  corpora_of(o.name);  // is there such a one?
  check_writable(o.out);
  const NamedTokenizer tokenizer = require_any_tokenizer(o.tokenizer);
  const BuilderVocabulary vocabulary(tokenizer, bos_of(o, tokenizer));
  if (vocabulary.bos < 0)
    throw InputError("--bos none: the eight distributions begin with a token of their own");
  write_distribution(o.out, build_distribution(o.name, vocabulary, counts_of(o, vocabulary)));
}

void from_text(const BuildOptions& o) {
  check_writable(o.out);
  const NamedTokenizer tokenizer = require_any_tokenizer(o.tokenizer);
  const BuilderVocabulary vocabulary(tokenizer, bos_of(o, tokenizer));
  FromTextOptions options{.name = o.name, .description = o.description, .length = o.length, .top = o.top};
  if (options.name.empty()) options.name = fs::path(o.out).stem().string();
  if (options.description.empty())
    options.description =
        fmt::format("{} tokens, as frequent as in {}", o.length, fs::path(o.text).filename().string());
  write_distribution(o.out, distribution_from_counts(vocabulary, counted(o, vocabulary, o.text), options));
}

void add_common(CLI::App& sub, BuildOptions& o) {
  sub.add_option("--tokenizer", o.tokenizer, "A tokenizer.json, or a model that has one")->required();
  sub.add_option("--out", o.out, "The file to write")->required();
  sub.add_option("--bos", o.bos, kBosHelp)->capture_default_str();
  sub.add_option("--threads", o.threads, "Threads; 0: one per core")->capture_default_str();
  sub.add_flag("--quiet", o.quiet, "No progress");
}

}  // namespace

void add_dist_build(CLI::App& dist) {
  const auto o = std::make_shared<BuildOptions>();
  CLI::App* sub =
      dist.add_subcommand("build", "One of the eight distributions of the benchmark, for any tokenizer");
  sub->add_option("NAME", o->name, fmt::format("{}", fmt::join(built_distributions(), ", ")))->required();
  sub->add_option("--counts", o->counts, "Counts of tokens: the file that training/data.py writes");
  sub->add_option("--corpus", o->corpora, "Text to count instead: english=FILE, spanish=FILE, code=FILE")
      ->allow_extra_args(false);
  add_common(*sub, *o);
  sub->callback([o] { build(*o); });

  const auto t = std::make_shared<BuildOptions>();
  CLI::App* text = dist.add_subcommand("from-text", "Independent tokens, as frequent as in a text of yours");
  text->add_option("TEXT", t->text, "A text file")->required();
  text->add_option("--name", t->name, "What it is called; default: the file's name");
  text->add_option("--description", t->description, "What it is, in a few words");
  text->add_option("--length", t->length, "Positions after the first token")
      ->check(CLI::Range(std::size_t{1}, kLongest))
      ->capture_default_str();
  text->add_option("--top", t->top, "Only so many of the most frequent tokens; 0: all")
      ->check(CLI::Range(std::size_t{0}, kLargestTop))
      ->capture_default_str();
  add_common(*text, *t);
  text->callback([t] { from_text(*t); });
}

}  // namespace deeptail::cli
