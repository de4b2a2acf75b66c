// How long a run will take, from what was committed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "runs/run_suite.h"
#include "sizes.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class RunEtas : public ::testing::Test {
 protected:
  // Two variants on two models, five items each.
  RunEtas() {
    std::string pattern = (fs::temp_directory_path() / "deeptail-eta-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    grid_.pairs = {{.model = "a"}, {.model = "b"}};
    for (std::uint32_t k = 0; k < 20; ++k)
      grid_.items.push_back({.pair = k / 10, .variant = k / 5 % 2, .id = id(k)});
  }
  ~RunEtas() override { fs::remove_all(folder_); }
  static std::string id(std::uint32_t k) { return fmt::format("{:016x}", k); }
  static std::string line(std::uint32_t k, double seconds) {
    return fmt::format(R"({{"item":"{}","seconds":{}}})", id(k), seconds);
  }

  std::string folder_;
  Grid grid_;
};

TEST_F(RunEtas, FollowsWhatIsCommittedByWhomever) {
  ShardWriter mine(folder_, "mine"), other(folder_, "other");
  mine.append(id(0), line(0, 2.0));
  CommittedItems committed(folder_);
  committed.refresh();
  RunEta eta(grid_, committed);
  const Progress first = eta.progress();
  EXPECT_EQ(first.done, 1u);
  EXPECT_EQ(first.before, 1u);
  EXPECT_EQ(first.total, 20u);
  EXPECT_LT(first.seconds_left, 0.0);  // nothing was done since it started

  mine.append(id(1), line(1, 4.0));     // variant 0 on a
  other.append(id(5), line(5, 30.0));   // variant 1 on a
  other.append(id(99), line(99, 1e6));  // of no item here
  committed.refresh();
  const Progress next = eta.progress();
  EXPECT_EQ(next.done, 3u);
  EXPECT_EQ(next.before, 1u);
  // 3 items of 3 s, 4 of 30 s; on b as on a: 5 of 3 s, 5 of 30 s. 34 s of work were done, however fast.
  const double work = 3 * 3.0 + 4 * 30.0 + 5 * 3.0 + 5 * 30.0;
  const double spent = next.seconds_left * 34.0 / work;
  EXPECT_GT(spent, 0.0);
  EXPECT_LT(spent, 60.0);
  mine.append(id(1), line(1, 4.0));  // again: as if nothing had happened
  committed.refresh();
  EXPECT_EQ(eta.progress().done, 3u);
}

TEST_F(RunEtas, LooksAtWhatIsNewOnly) {
  grid_.items.clear();
  for (std::uint32_t k = 0; k < 200000; ++k)
    grid_.items.push_back({.pair = k % 2, .variant = k % 7, .id = id(k)});
  ShardWriter(folder_, "mine").append(id(3), line(3, 1.0));
  CommittedItems committed(folder_);
  RunEta eta(grid_, committed);
  committed.refresh();
  const auto start = std::chrono::steady_clock::now();
  for (int commit = 0; commit < 10000; ++commit) eta.progress();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  EXPECT_LT(spent.count(), sized(20.0, 100.0));  // the whole grid each time: minutes
}

}  // namespace
}  // namespace deeptail
