// The search for temperatures, with resume: results lie in a file of lines, and the table holds the choice.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "core/file_lock.h"
#include "core/write_file.h"
#include "deeptail/tune.h"
#include "truth/truth.h"

namespace deeptail {

namespace {

// A model, a law and the truth about them.
struct TunePair {
  Transformer model;
  std::unique_ptr<InputLaw> law;
  Truth truth;
};
using TunePairs = std::map<std::pair<std::string, std::string>, TunePair>;

TunePairs load_tune_pairs(const TuneConfig& config) {
  TunePairs pairs;
  for (const std::string& name : config.models) {
    const LoadedModel model = load_model(name);
    for (const std::string& dist : config.dists) {
      auto law = load_law(dist, model);
      const Provenance own = provenance_of(model, *law);
      Truth truth = read_counts_of(own, model.config().d_vocab,
                                   truth_path(truth_name(own.model, own.dist), name, dist));
      pairs.emplace(std::pair(name, dist), TunePair{model.transformer, std::move(law), std::move(truth)});
    }
  }
  return pairs;
}

// "" where there is no file.
std::string text_of_file(const std::string& path) {
  return std::filesystem::exists(path) ? std::string(InputFile(path).text()) : std::string();
}

// The file of results, ready to append whole lines: what a killed run left of its last one is cut off.
class ResultFile {
 public:
  explicit ResultFile(const std::string& path) : path_(path) {
    if (path.empty()) return;
    if (const std::string text = text_of_file(path); !text.empty() && text.back() != '\n')
      write_file(path, std::string_view(text).substr(0, text.rfind('\n') + 1));
    file_.open(path, std::ios::app);
    if (!file_) throw InputError("{}: cannot open for writing: {}", path, std::strerror(errno));
  }
  void append(const std::string& line) {
    if (path_.empty() || file_ << line << std::flush) return;
    throw InputError("{}: cannot write: {}; the same search continues", path_, std::strerror(errno));
  }

 private:
  std::string path_;
  std::ofstream file_;
};

// What is known, by all threads, and whether they shall find out more.
class Findings {
 public:
  Findings(TuneResults known, std::size_t cells, const Watch& watch)
      : known_(std::move(known)), cells_(cells), before_(known_.size()), watch_(watch) {}
  bool goes_on() {
    const std::lock_guard lock(mutex_);
    return ask();
  }
  void add(const TuneConfig& config, const TuneCell& cell, const TuneResult& result, ResultFile& file) {
    const std::lock_guard lock(mutex_);
    known_[cell] = result;
    file.append(result_line(config, cell, result));
    ask();
  }
  TuneResults& known() { return known_; }

 private:
  bool ask() { return deeptail::goes_on(watch_, progress_of(known_.size(), cells_, before_)); }

  std::mutex mutex_;
  TuneResults known_;
  std::size_t cells_, before_;
  const Watch& watch_;
};

void run_cells(const TuneConfig& config, std::span<const TuneCell> pending, ResultFile& file,
               ThreadPool& pool, Findings& findings) {
  const TunePairs pairs = load_tune_pairs(config);
  pool.for_each_block(pending.size(), [&](std::size_t i, std::size_t) {
    if (!findings.goes_on()) return;
    const TunePair& pair = pairs.at({pending[i].model, pending[i].dist});
    ThreadPool one(1);
    const auto result = run_tune_cell({pair.model, *pair.law, pair.truth}, config, pending[i], one,
                                      [&](const Progress&) { return findings.goes_on(); });
    if (result) findings.add(config, pending[i], *result, file);
  });
}

}  // namespace

TuneResults run_tune_search(const TuneConfig& config, const std::string& out, ThreadPool& pool,
                            const Watch& watch) {
  TuneResults results;
  std::optional<WorkLock> lock;  // two searches into one file would mix their lines
  if (!out.empty()) {
    lock.emplace(out);
    results = parse_tune_results(text_of_file(out), config, out);
  }
  std::vector<TuneCell> pending;
  for (const TuneCell& cell : tune_cells(config))
    if (!results.contains(cell)) pending.push_back(cell);
  const std::size_t cells = results.size() + pending.size();
  Findings findings(std::move(results), cells, watch);
  if (findings.goes_on() && !pending.empty()) {
    ResultFile file(out);
    run_cells(config, pending, file, pool, findings);
  }
  return std::move(findings.known());
}

std::vector<ChosenTemperature> read_temperatures(const std::string& path) {
  const std::string text = text_of_file(path);
  return text.empty() ? std::vector<ChosenTemperature>() : parse_temperatures(text, path);
}

TuneResults under_own_names(const TuneResults& results) {
  std::map<std::pair<std::string, std::string>, Provenance> own;
  for (const auto& [cell, result] : results)
    if (const auto [pair, fresh] = own.try_emplace({cell.model, cell.dist}); fresh) {
      const LoadedModel model = load_model(cell.model);
      pair->second = provenance_of(model, *load_law(cell.dist, model));
    }
  TuneResults renamed;
  for (const auto& [asked, result] : results) {
    const Provenance& names = own.at({asked.model, asked.dist});
    TuneCell cell = asked;
    cell.model = names.model, cell.dist = names.dist;
    renamed[cell] = result;
  }
  return renamed;
}

void update_temperatures(const std::string& path, const TuneResults& results) {
  std::map<std::tuple<std::string, std::string, std::string>, ChosenTemperature> rows;
  const auto keep = [&](const ChosenTemperature& c) { rows[{c.cell.model, c.cell.dist, c.cell.method}] = c; };
  for (const ChosenTemperature& c : read_temperatures(path)) keep(c);
  for (const ChosenTemperature& c : choose(results)) keep(c);
  std::vector<ChosenTemperature> all;
  for (const auto& [key, row] : rows) all.push_back(row);
  write_file(path, to_json(all));
}

}  // namespace deeptail
