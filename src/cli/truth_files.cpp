// deeptail truth merge, show, compare and import: files of counts.
#include <filesystem>

#include "cli/commands.h"
#include "cli/read_files.h"
#include "cli/truth_report.h"
#include "core/data_places.h"
#include "core/nearest.h"
#include "core/screen_text.h"
#include "core/tell.h"
#include "core/write_file.h"
#include "deeptail/truth.h"
#include "truth/truth.h"

namespace deeptail::cli {

namespace {

struct FileOptions {
  std::vector<std::string> files;
  std::string out, model, dist;
  bool json = false;
};

void refuse_own_files(const FileOptions& o) {
  ReadFiles reads;
  for (const std::string& file : o.files) reads.add_file(file);
  reads.refuse_output(o.out);
}

// A file, or the name of one in the folders called truth: dt-1l-hex.
std::string file_called(const std::string& name) {
  if (std::filesystem::exists(name)) return name;
  for (const std::string& file_name : {name, name + ".json"})
    if (const auto path = find_truth(file_name)) return *path;
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& place : data_places("truth"))
    for (const auto& entry : std::filesystem::directory_iterator(place, error))
      names.push_back(entry.path().stem().string());
  throw InputError(
      "{}: no such file, and none of this name in $DEEPTAIL_HOME/truth, ./truth or beside the program; "
      "`deeptail truth` counts one{}",
      name, did_you_mean(name, names));
}

// Inputs that were kept are merged where all files have some.
void merge_kept(const FileOptions& o, const Truth& merged) {
  std::vector<std::string> paths;
  std::string without;
  for (const std::string& file : o.files)
    if (std::filesystem::exists(hits_path(file)))
      paths.push_back(hits_path(file));
    else if (without.empty())
      without = file;
  if (paths.empty()) return;
  if (!without.empty()) {
    tell(stderr, "note: inputs were kept for some of these counts and not for {}: they are not merged\n",
         screen_text(without));
    return;
  }
  const TruthHits hits = merge_hits(paths);
  check_hits_of(hits, "inputs beside the files", merged);
  write_file(hits_path(o.out), to_jsonl(hits));
}

void merge_events(const FileOptions& o) {
  const EventCounts merged = merge_event_counts(o.files);
  write_file(o.out, to_json(merged));
  fmt::print("{}: {} texts of {} files\n", o.out, merged.samples(), o.files.size());
}

void merge(const FileOptions& o) {
  refuse_own_files(o);
  if (is_event_counts(o.files.at(0))) return merge_events(o);
  const Truth merged = merge_truth(o.files);
  merge_kept(o, merged);
  write_truth(o.out, merged);
  fmt::print("{}: {} inputs of {} files\n", o.out, merged.samples(), o.files.size());
  for (const TruthRange& range : merged.ranges)
    if (range.source != merged.ranges[0].source) {
      tell(stderr,
           "note: counted by different programs ({} and {}), whose arithmetic may differ at near-ties\n",
           screen_text(merged.ranges[0].source), screen_text(range.source));
      break;
    }
}

void import(const FileOptions& o) {
  refuse_own_files(o);
  const Truth truth = import_truth(o.files.at(0), o.model, o.dist);
  write_truth(o.out, truth);
  fmt::print("{}: {} inputs, {} tokens seen\n", o.out, truth.samples(), truth.counts.size());
}

}  // namespace

void add_truth_files(CLI::App& truth) {
  const auto o = std::make_shared<FileOptions>();
  CLI::App* sub = truth.add_subcommand("merge", "Add up counts of different inputs; overlaps are refused");
  sub->add_option("FILES", o->files, "Truth files, two or more")->required()->expected(2, 1 << 20);
  sub->add_option("--out", o->out, "File to write")->required();
  sub->callback([o] { merge(*o); });

  sub = truth.add_subcommand("show", "What was counted: tokens seen, decades, frequent and rare tokens");
  sub->add_option("FILE", o->files, "Truth file, or the name of one that is shipped: dt-1l-hex")
      ->required()
      ->expected(1);
  sub->add_flag("--json", o->json, "Machine-readable output");
  sub->callback([o] {
    const std::string path = file_called(o->files.at(0));
    if (is_event_counts(path)) return show_events(read_event_counts(path), o->json);
    show_truth(read_truth(path), o->json);
  });

  sub = truth.add_subcommand("compare",
                             "Do two independent counts agree? And what did the first one never see?");
  sub->add_option("FILES", o->files, "Two truth files, or names")->required()->expected(2);
  sub->add_flag("--json", o->json, "Machine-readable output");
  sub->callback([o] {
    show_comparison(read_truth(file_called(o->files.at(0))), read_truth(file_called(o->files.at(1))),
                    o->json);
  });

  sub =
      truth.add_subcommand("import", "Counts kept as one tensor (ARC's frequencies32-*.pt) as a truth file");
  sub->add_option("FILE", o->files, "A .pt, .npy or .safetensors file with one integer tensor")
      ->required()
      ->expected(1);
  sub->add_option("--model-name", o->model, "Name of the model that was counted")->required();
  sub->add_option("--dist-name", o->dist, "Name of its input distribution")->required();
  sub->add_option("--out", o->out, "File to write")->required();
  sub->callback([o] { import(*o); });
}

}  // namespace deeptail::cli
