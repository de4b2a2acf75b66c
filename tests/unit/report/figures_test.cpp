// The paper's figures and orders of a run made up by hand.
#include <map>

#include "deeptail/report.h"
#include "report/order_tables.h"
#include "report/run_fixture.h"
#include "report/svg_plot.h"

namespace deeptail {
namespace {

std::map<std::string, std::string> figures_of(const Run& run, const ReportExtras& extras = {}) {
  ThreadPool pool(1);
  std::map<std::string, std::string> out;
  for (const TableFile& file : report_figures(make_report(run, pool), run, extras))
    out[file.name] = file.text;
  return out;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// qld is even-handed but once zero; itgis is far too high.
Run two_methods_of_figures() {
  Run run = small_run();
  run.items = {estimate(1, 100, 0.11), estimate(2, 10, 0.0), estimate(1, 100, 0.9, "itgis"),
               estimate(2, 10, 0.3, "itgis")};
  return run;
}

TEST(Figures, ZerosAreCrossesAndInfiniteLossesAreNamed) {
  const auto figures = figures_of(two_methods_of_figures());
  for (const char* name : {"metrics.svg", "loss-by-model.svg", "loss-by-dist.svg", "scatter-m.svg"})
    EXPECT_TRUE(figures.contains(name)) << name;
  EXPECT_EQ(figures.size(), 4u) << "one setting of each method, and no activations";
  const std::string& scatter = figures.at("scatter-m.svg");
  EXPECT_EQ(occurrences(scatter, "<circle"), 3u + 2u) << "three estimates and two entries of the legend";
  EXPECT_EQ(occurrences(scatter, "l6 6m0 -6l-6 6"), 1u) << "a zero";
  EXPECT_EQ(occurrences(figures.at("metrics.svg"), "infinite: qld"), 2u) << "log space and Itakura-Saito";
  for (const auto& [name, text] : figures) {
    EXPECT_TRUE(text.ends_with("</svg>\n")) << name;
    EXPECT_EQ(text.find("nan"), std::string::npos) << name;
    EXPECT_EQ(text, figures_of(two_methods_of_figures()).at(name)) << "the same bytes";
  }
}

TEST(Figures, AModelsNameIsNoPath) {
  auto run = two_methods_of_figures();
  run.header.models[0].name = "../a/b";
  for (RunItem& item : run.items) item.model = "../a/b";
  EXPECT_TRUE(figures_of(run).contains("scatter-.._a_b.svg"));
}

TEST(Figures, VariancesBeforeAndAfterWhitening) {
  const ReportExtras extras{
      .whitening = {{"m", "d", {4.0, 1.0}, {1.1, 0.9}}, {"m", "e", {2.0, 1.0}, {1.0, 1.0}}}};
  const auto figures = figures_of(two_methods_of_figures(), extras);
  const std::string& svg = figures.at("whitening.svg");
  EXPECT_NE(figures.at("whitening.csv").find("\nm,e,2,1,1,1,1,1\n"), std::string::npos);
  EXPECT_EQ(occurrences(svg, "fill-opacity=\"0.2\""), 2u) << "bands";
  EXPECT_NE(svg.find("after whitening"), std::string::npos);
}

Run swept() {
  Run run = small_run();
  const auto add = [&](const char* variant, double p) {
    run.items.push_back(estimate(1, 100, p, "ga-amls", variant));
  };
  add("ga-amls/mala/450", 0.11);
  add("ga-amls/mala/900", 0.105);
  add("ga-amls/rwmh/450", 0.3);
  add("ga-amls/rwmh/900", 0.101);
  return run;
}

TEST(Figures, SettingsAreBarsUnderFourProfiles) {
  const auto figures = figures_of(swept());
  for (const char* name :
       {"settings-benchmarking.svg", "settings-oversight.svg", "settings-stress.svg", "settings-audit.svg"})
    EXPECT_EQ(occurrences(figures.at(name), "fill-opacity=\"0.45\""), 4u) << name;
}

TEST(OrderTables, TheOrderDependsOnTheLoss) {
  ThreadPool pool(1);
  const std::string table = order_table(make_report(two_methods_of_figures(), pool));
  EXPECT_NE(table.find("| squared error, log space | itgis ("), std::string::npos) << table;
  EXPECT_NE(table.find("qld (inf)"), std::string::npos) << table;
  EXPECT_NE(table.find("| SPB (4, 2) | itgis"), std::string::npos) << table;
}

TEST(OrderTables, SettingsAreComparedWithAllElseAlikeAndWithTwiceTheWork) {
  ThreadPool pool(1);
  const std::string table = settings_table(make_report(swept(), pool));
  EXPECT_NE(table.find("| mala, not rwmh | 1 | 1 | 1 | 1 | 2 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| mala, not rwmh with twice the number | 0 | 0 | 0 | 0 | 1 |"), std::string::npos)
      << table;
  EXPECT_NE(table.find("| 450, not 900 | 0 | 0 | 0 | 0 | 2 |"), std::string::npos) << table;
  EXPECT_EQ(settings_table(make_report(two_methods_of_figures(), pool)), "");
}

TEST(SvgPlot, TicksOfLessThanADecadeSayTheirDigit) {
  const std::string svg = render_svg({{"t", {"x", true}, {"y"}, {{"s", {2e-7, 9e-7}, {0.0, 1.0}}}}});
  EXPECT_NE(svg.find(">2e-7<"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">5e-7<"), std::string::npos) << svg;
}

}  // namespace
}  // namespace deeptail
