// What the lines of a run folder tell beyond the estimate.
#include "deeptail/report.h"
#include "report/run_fixture.h"

namespace deeptail {
namespace {

TEST(ItemDetails, OfTheFixture) {
  const std::string folder = std::string(DEEPTAIL_TEST_DATA) + "/report/run";
  const ItemDetails details = read_item_details(folder);
  const auto run = read_run(folder);
  ASSERT_EQ(details.size(), run.items.size());
  for (const RunItem& item : run.items) {
    const ItemDetail& detail = details.at(item.id);
    EXPECT_EQ(detail.triggers.size(), item.method == "tokensplit" ? 3u : 0u);
    EXPECT_EQ(detail.n_triggers, item.method == "tokensplit" ? 5u : 0u);
    EXPECT_EQ(detail.survive_fraction.size(), detail.n_levels);
    EXPECT_EQ(detail.acceptance.size(), detail.n_levels);
    EXPECT_EQ(detail.n_levels > 0, item.method == "tokensplit" || item.method == "ga-amls") << item.method;
  }
}

TEST(ItemDetails, TheCommandHasTheSuitesSettings) {
  const std::string folder = std::string(DEEPTAIL_TEST_DATA) + "/report/run";
  const ItemDetails details = read_item_details(folder);
  std::size_t seen = 0;
  for (const RunItem& item : read_run(folder).items) {
    const std::string start = fmt::format("deeptail estimate --model {} --dist {} --target {} --method ",
                                          item.model, item.dist, item.target[0]);
    const std::string rest = item.variant == "tokensplit" ? "tokensplit --budget 2^18 --seed 1"
                             : item.variant == "ga-amls/mala"
                                 ? "ga-amls --kernel mala --seed 1 --calibration-seed 1"
                                 : "";
    if (rest.empty()) continue;
    ++seen;
    EXPECT_EQ(details.at(item.id).command, start + rest);
  }
  EXPECT_EQ(seen, 24u);
}

}  // namespace
}  // namespace deeptail
