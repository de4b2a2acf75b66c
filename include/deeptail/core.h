// Shared ground of every stage: errors, files, threads.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] deeptail {

inline constexpr std::string_view kVersion = "0.1.0";

using TokenId = std::int32_t;

// Models, distributions and counts are looked for by name in $DEEPTAIL_HOME, in the current folder, beside the
// program, and in this folder: in its models/, distributions/, truth/ and suites/.
void add_data_folder(std::string folder);

// What an error's sentence advises to do otherwise, for front ends: each says how that is done there.
enum class Hint {
  kNone,
  kDevice,      // compute on the CPU
  kOut,         // write to another place
  kRest,        // likewise, or count only what is missing and merge
  kCountTruth,  // count the truth first
  kShard,       // take no share of a run
  kOnly,        // other methods of a suite, or all
  kSubject,     // name a model and a distribution
  kFetch        // download the model first
};

// The user's mistake (file, setting, data), told in one sentence: what, where, expected, found, what to do.
// The command line prints it and exits with code 2. Bugs are other exceptions and exit with code 1.
class InputError : public std::runtime_error {
 public:
  template <class... Args>
  explicit InputError(fmt::format_string<Args...> text, Args&&... args)
      : std::runtime_error(fmt::format(text, std::forward<Args>(args)...)) {}

  Hint hint() const { return hint_; }
  InputError with_hint(Hint hint) && {
    hint_ = hint;
    return std::move(*this);
  }

 private:
  Hint hint_ = Hint::kNone;
};

// A whole file, read into memory: what happens to the file afterwards changes nothing. (A mapping would end
// in a bus error where another process cuts the file.) Throws InputError when it cannot be opened or read, or
// is not a regular file.
class InputFile {
 public:
  explicit InputFile(const std::string& path);

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_.get()), size_}; }
  // Of bytes(), a part that nobody reads any more: its memory goes back to the system, what it holds is lost.
  void give_back(std::span<const std::byte> part) const;

 private:
  std::string path_;
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

// Runs blocks of work on a fixed set of threads. Which thread takes which block is not fixed, so a block's
// result must depend on the block alone: then the outcome is the same for any number of threads.
class ThreadPool {
 public:
  static constexpr std::size_t kMostThreads = 1024;
  // n_threads 0: one per core. Throws InputError for more than kMostThreads or than the system gives.
  explicit ThreadPool(std::size_t n_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const;

  // Calls body(block, worker) for every block < n_blocks; worker < size() names scratch space that no other
  // call uses at the same time. Returns when all are done; the first exception of a body is rethrown here.
  // Not reentrant: a body must not call for_each_block of the same pool.
  void for_each_block(std::size_t n_blocks,
                      const std::function<void(std::size_t block, std::size_t worker)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Heap arrays aligned for SIMD.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, kAlignment); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};
template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

// As PREFIX/include/deeptail/core.h: what was installed with it lies in PREFIX/share/deeptail.
#ifdef DEEPTAIL_INSTALLED
inline const bool installed_data_added =
    (add_data_folder(std::string(__FILE__) + "/../../../share/deeptail"), true);
#endif

}  // namespace deeptail
