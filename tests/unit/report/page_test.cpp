// What is written: the page's data and the tables.
#include <zlib.h>

#include "core/json.h"
#include "deeptail/report.h"
#include "report/run_fixture.h"

namespace deeptail {
namespace {

Run two_methods() {
  auto run = small_run();
  run.items = {estimate(1, 100, 0.2, "qld"), estimate(1, 100, 0.0, "mc", "mc/2^4_b"),
               estimate(2, 10, 0.01, "qld"), estimate(2, 10, 0.02, "mc", "mc/2^4_b")};
  run.items[0].target_text = "</script><b>";
  return run;
}

std::string table(const std::vector<TableFile>& files, const std::string& name) {
  for (const TableFile& file : files)
    if (file.name == name) return file.text;
  ADD_FAILURE() << name << " is missing";
  return "";
}

TEST(PageData, HoldsWhatFiguresNeed) {
  const auto run = two_methods();
  ThreadPool pool(1);
  const Report report = make_report(run, pool);
  const Json json =
      parse_json(report_json(report, run, {.whitening = {}, .no_whitening = "no model"}), "test");
  EXPECT_EQ(json["items"]["p"].size(), 4u);
  EXPECT_EQ(json["items"]["t"], (std::vector<int>{0, 0, 1, 1}));
  EXPECT_TRUE(json["items"]["p"][1].is_null()) << "an estimate of zero";
  EXPECT_NEAR(json["items"]["p"][0].get<double>(), std::log10(0.2), 1e-4);
  EXPECT_EQ(json["targets"][0][3], "</script><b>");
  EXPECT_EQ(json["scores"][1]["loss"][kItakuraSaito][0], "inf");
  EXPECT_EQ(json["experiments"].size(), 6u);
  EXPECT_EQ(json["whitening"]["why_none"], "no model");
  EXPECT_EQ(json["profiles"][3]["alpha"], 4.0);
}

std::string inflated(const std::string& base64, std::size_t size) {
  std::string bytes;
  std::uint32_t bits = 0;
  int n = 0;
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
    if ((n += 6) >= 8) bytes += static_cast<char>(bits >> (n -= 8) & 255);
  }
  std::string out(size, '\0');
  uLongf length = size;
  EXPECT_EQ(::uncompress(reinterpret_cast<Bytef*>(out.data()), &length,
                         reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
            Z_OK);
  out.resize(length);
  return out;
}

TEST(Page, DataComesBackWhole) {
  for (const std::string json : {"{}", "{\"a\":1}", "{\"text\":\"</script>\"}"}) {
    const std::string page = render_page("<a>@DEEPTAIL_DATA@<b>", json);
    ASSERT_TRUE(page.starts_with("<a>") && page.ends_with("<b>"));
    const std::string data = page.substr(3, page.size() - 6);
    EXPECT_EQ(data.find('<'), std::string::npos);
    EXPECT_EQ(inflated(data, json.size()), json);
  }
}

TEST(Page, TemplateMustHoldTheMarkerOnce) {
  EXPECT_THROW(render_page("nothing", "{}"), std::logic_error);
  EXPECT_THROW(render_page("@DEEPTAIL_DATA@@DEEPTAIL_DATA@", "{}"), std::logic_error);
}

TEST(Tables, BestIsBoldAndNamesAreEscaped) {
  ThreadPool pool(1);
  const std::vector<TableFile> files = report_tables(make_report(two_methods(), pool));
  EXPECT_EQ(files.size(), 14u);
  const std::string md = table(files, "loss-benchmarking.md"), tex = table(files, "loss-benchmarking.tex");
  EXPECT_NE(md.find("| Dist. | qld | mc/2^4_b | noise of the truth |"), std::string::npos) << md;
  EXPECT_NE(md.find("| d | **0."), std::string::npos) << md;
  EXPECT_NE(md.find("| Avg. | **0."), std::string::npos) << md;
  EXPECT_NE(table(files, "summary.md").find("| Profile | qld | mc/2^4_b | noise of the truth |"),
            std::string::npos);
  EXPECT_NE(table(files, "summary.md").find("| benchmarking | **0."), std::string::npos);
  EXPECT_NE(tex.find("mc/2\\textasciicircum{}4\\_b"), std::string::npos) << tex;
  EXPECT_NE(tex.find("\\textbf{0."), std::string::npos) << tex;
  EXPECT_NE(tex.find("\\toprule"), std::string::npos);
  // qmin 0.01, so 0.01 qmin / mmax = 1e-6.
  EXPECT_NE(tex.find("($\\alpha=1.5$, $\\gamma=0$, $\\varepsilon=1.00{\\times}10^{-6}$)"), std::string::npos)
      << tex;
}

TEST(Tables, ScoresAsCsv) {
  auto run = two_methods();
  for (RunItem& item : run.items)
    if (item.method == "qld") item.variant = "qld, \"x\"";
  ThreadPool pool(1);
  const std::string csv = table(report_tables(make_report(run, pool)), "scores.csv");
  EXPECT_EQ(csv.substr(0, csv.find(',', 11)), "model,dist,method");
  EXPECT_NE(csv.find("m,d,qld,\"qld, \"\"x\"\"\",2,2,0,2,"), std::string::npos) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

TEST(Tables, AMissingCellLeavesNoAverage) {
  auto run = two_methods();
  run.header.distributions.push_back({.name = "e"});
  run.items.push_back(estimate(1, 100, 0.1, "qld"));
  run.items.back().dist = "e";
  ThreadPool pool(1);
  const std::string md = table(report_tables(make_report(run, pool)), "loss-oversight.md");
  EXPECT_NE(md.find("| e | **"), std::string::npos) << md;
  const std::string average = md.substr(md.find("| Avg."));
  EXPECT_NE(average.find("** | - |"), std::string::npos) << md;
}

}  // namespace
}  // namespace deeptail
