// The folder of a run (docs/runs.md): a header run.json, and shards shard-*.jsonl to which every process
// appends its own estimates.
//
// An estimate is two lines: the data, then its commit record with the data's CRC-32. The data is on the disk
// before the commit record is written, so a commit record vouches for the line before it, whatever happened
// later. What follows the last commit record of a shard is the work of a process that was cut off, and does
// not count.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deeptail/runs.h"

namespace deeptail {

// --- text ---

std::string to_json(const RunHeader& header);
RunHeader parse_run_header(std::string_view json, std::string_view where);
// Throws InputError, beginning with the folder, when a run made from `found` cannot be continued with
// `wanted`.
void check_same_run(const RunHeader& found, const RunHeader& wanted, std::string_view folder);

// The data line of an item, without newline. `estimate` is to_json(Estimate).
std::string data_line(const RunItem& item, std::string_view estimate);
RunItem parse_data_line(std::string_view line, std::string_view where);
// The commit record of a data line, without newline.
std::string commit_line(std::string_view id, std::string_view data);
// Are two lines of one item the same, time aside?
bool same_result(std::string_view a, std::string_view b, std::string_view where);

// A run as text: of a folder, or of the one file that bench export packs it into.
struct RunText {
  struct Shard {
    std::string path, text;
  };
  std::string header, header_path;
  std::vector<Shard> shards = {};
};
RunText run_text(const std::string& folder);

// Tells every item's data line, too.
using OnLine = std::function<void(const std::string& id, std::string_view line)>;
Run read_run(const std::string& folder, const OnLine& on_line);

// --- shards ---

struct ShardScan {
  struct Entry {
    std::string id;
    std::string_view data;  // into the text that was scanned
    std::size_t line = 0;   // number within that text, from 1
  };
  std::vector<Entry> committed;
  std::size_t end = 0;   // bytes up to the end of the last commit record
  std::size_t torn = 0;  // data lines, whole or not, without a commit record
};
// Throws InputError for anything between commit records that is not a data line.
ShardScan scan_shard(std::string_view text, std::string_view where);

std::vector<std::string> shard_paths(const std::string& folder);  // sorted
// All of a file from byte `from` on, as far as it goes: shards may grow or be cut while they are read.
std::string read_from(const std::string& path, std::uint64_t from);

// What is committed in a folder, kept up to date while others write to it.
class CommittedItems {
 public:
  explicit CommittedItems(std::string folder) : folder_(std::move(folder)) {}
  // Reads what was added since the last call.
  void refresh();
  bool has(const std::string& id) const { return seconds_.contains(id); }
  std::size_t size() const { return seconds_.size(); }
  const std::map<std::string, double>& seconds() const { return seconds_; }  // that each id took
  // The same in the order in which they were seen: what is new is at the end.
  using Taken = std::pair<const std::string, double>;
  const std::vector<const Taken*>& in_order() const { return in_order_; }

 private:
  std::string folder_;
  std::map<std::string, std::uint64_t> seen_;  // bytes of each shard up to its last commit record
  std::map<std::string, double> seconds_;
  std::vector<const Taken*> in_order_;
};

// Appends to shard-NAME.jsonl, or to shard-NAME-2.jsonl and so on where another process holds that one. What
// an earlier process left uncommitted is cut off.
class ShardWriter {
 public:
  ShardWriter(const std::string& folder, const std::string& name);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Returns when the item is on the disk for good. Throws InputError when it cannot be written; then the
  // shard is as it was before.
  void append(const std::string& id, std::string_view data);
  const std::string& path() const { return path_; }

 private:
  bool try_open(const std::string& path);
  void write_and_sync(std::string_view text);

  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;  // committed bytes
};

}  // namespace deeptail
