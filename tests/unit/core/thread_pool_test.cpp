#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "deeptail/core.h"

namespace deeptail {
namespace {

TEST(ThreadPool, RunsEveryBlockOnce) {
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (const std::size_t n : {0, 1, 5, 1000}) {
      std::vector<int> seen(n, 0);
      pool.for_each_block(n, [&](std::size_t block, std::size_t worker) {
        ASSERT_LT(worker, threads);
        ++seen[block];
      });
      EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), std::size_t{0}), n);
      EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
    }
  }
}

TEST(ThreadPool, WorkerNumbersAreExclusive) {
  ThreadPool pool(4);
  std::vector<int> scratch(pool.size(), 0);  // a race here is a thread-sanitizer report
  pool.for_each_block(2000, [&](std::size_t, std::size_t worker) { ++scratch[worker]; });
  EXPECT_EQ(std::accumulate(scratch.begin(), scratch.end(), 0), 2000);
}

TEST(ThreadPool, RethrowsAndStaysUsable) {
  ThreadPool pool(3);
  const auto fail_at_7 = [](std::size_t block, std::size_t) {
    if (block == 7) throw InputError("block {}", block);
  };
  EXPECT_THROW(pool.for_each_block(100, fail_at_7), InputError);
  std::atomic<int> count{0};
  pool.for_each_block(10, [&](std::size_t, std::size_t) { ++count; });
  EXPECT_EQ(count, 10);
}

TEST(ThreadPool, RefusesMoreThreadsThanMakeSense) {
  EXPECT_THROW(ThreadPool(ThreadPool::kMostThreads + 1), InputError);
  EXPECT_THROW(ThreadPool(std::size_t(-1)), InputError);
}

}  // namespace
}  // namespace deeptail
