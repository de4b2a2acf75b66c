// What is written: the page's data and the tables.
#include <zlib.h>

#include "core/json.h"
#include "deeptail/method_rows.h"
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
  EXPECT_EQ(json["experiments"].size(), 8u);
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
  EXPECT_EQ(files.size(), 20u);
  const std::string md = table(files, "loss-benchmarking.md"), tex = table(files, "loss-benchmarking.tex");
  EXPECT_NE(md.find("| Dist. | qld | mc/2^4\\_b | noise of the truth |"), std::string::npos) << md;
  EXPECT_NE(md.find("| d | **0."), std::string::npos) << md;
  EXPECT_NE(md.find("| Avg. | **0."), std::string::npos) << md;
  EXPECT_NE(table(files, "summary.md").find("| Profile | qld | mc/2^4\\_b | noise of the truth |"),
            std::string::npos);
  EXPECT_NE(table(files, "summary.md").find("| benchmarking | **0."), std::string::npos);
  EXPECT_NE(tex.find("mc/2\\textasciicircum{}4\\_b"), std::string::npos) << tex;
  EXPECT_NE(tex.find("\\textbf{0."), std::string::npos) << tex;
  EXPECT_NE(tex.find("\\toprule"), std::string::npos);
  // qmin 0.01, so 0.01 qmin / mmax = 1e-6.
  EXPECT_NE(tex.find("($\\alpha=1.5$, $\\gamma=0$, $\\varepsilon=1.00{\\times}10^{-6}$)"), std::string::npos)
      << tex;
}

TEST(PageData, HoldsEstimatesWithoutTruth) {
  auto run = two_methods();
  run.items[1] = without_truth(run.items[1]);
  ThreadPool pool(1);
  const Report report = make_report(run, pool);
  const Json json = parse_json(report_json(report, run, {}), "test");
  EXPECT_EQ(json["items"]["p"].size(), 4u);
  EXPECT_TRUE(json["items"]["in"][1].is_null()) << "no truth that could be in the interval";
  EXPECT_EQ(json["items"]["in"][0], -1);
  EXPECT_EQ(json["meta"]["without_truth"], 1);
  EXPECT_EQ(json["meta"]["scored"], 3);
}

// In the methods' order and with their colours; a method that there is not comes last, without one.
TEST(PageData, NamesTheColoursOfMethods) {
  auto run = two_methods();
  const char* const names[] = {"mc", "magic", "tokensplit", "qld"};
  for (std::size_t i = 0; i < run.items.size(); ++i) run.items[i].method = run.items[i].variant = names[i];
  ThreadPool pool(1);
  const Json variants = parse_json(report_json(make_report(run, pool), run, {}), "test")["variants"];
  ASSERT_EQ(variants.size(), 4u);
  const char* const ordered[] = {"tokensplit", "qld", "mc"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(variants[i]["method"], ordered[i]);
    EXPECT_EQ(variants[i]["colour"], method_row(ordered[i]).colour);
  }
  EXPECT_EQ(variants[3]["method"], "magic");
  EXPECT_TRUE(variants[3]["colour"].is_null());
}

TEST(PageData, HoldsDetailsOfItems) {
  auto run = two_methods();
  run.items[1].id = "00000000000000aa";
  ThreadPool pool(1);
  const Report report = make_report(run, pool);
  ReportExtras extras;
  extras.details[run.items[1].id] = {.triggers = {"a", "b"},
                                     .n_triggers = 5,
                                     .survive_fraction = {0.25, NAN},
                                     .acceptance = {0.5, 0.25},
                                     .n_levels = 2,
                                     .command = "deeptail estimate"};
  const Json details = parse_json(report_json(report, run, extras), "test")["details"];
  EXPECT_EQ(details["items"], std::vector<int>{1});
  EXPECT_EQ(details["values"][0]["triggers"], (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(details["values"][0]["n_triggers"], 5);
  EXPECT_EQ(details["values"][0]["survive"][0], 0.25);
  EXPECT_TRUE(details["values"][0]["survive"][1].is_null());
  EXPECT_EQ(details["values"][0]["command"], "deeptail estimate");
}

TEST(PageData, DetailsStaySmall) {
  auto run = small_run();
  ReportExtras extras;
  for (TokenId t = 1; t <= 4000; ++t) {
    run.items.push_back(without_truth(estimate(t, 0, 0.1)));
    run.items.back().id = fmt::format("{:016x}", t * 0x9e3779b97f4a7c15u);
    extras.details[run.items.back().id] = {.triggers = {std::string(500, 'x')}, .n_triggers = 1};
  }
  ThreadPool pool(1);
  const std::string json = report_json(make_report(run, pool), run, extras);
  EXPECT_LT(json.size(), 1'700'000u);
  const Json details = parse_json(json, "test")["details"];
  EXPECT_EQ(details["known"], 4000);
  EXPECT_GT(details["items"].size(), 1000u);
  EXPECT_GT(details["items"].back(), 3000) << "spread over the run";
}

TEST(Tables, WithoutTruthThereAreNoLosses) {
  auto run = two_methods();
  for (RunItem& item : run.items) item = without_truth(item);
  ThreadPool pool(1);
  const std::vector<TableFile> files = report_tables(make_report(run, pool));
  EXPECT_EQ(files.size(), 2u);
  EXPECT_NE(table(files, "summary.md").find("No truth is known"), std::string::npos);
  EXPECT_NE(table(files, "scores.csv").find("m,d,qld,qld,2,2,0,0,0,0,0,"), std::string::npos)
      << table(files, "scores.csv");
}

TEST(Tables, PairsWithoutTruthAreNoRows) {
  auto run = two_methods();
  run.items.push_back(without_truth(estimate(1, 0, 0.1, "qld")));
  run.items.back().dist = "e";
  ThreadPool pool(1);
  const std::string md = table(report_tables(make_report(run, pool)), "loss-audit.md");
  EXPECT_EQ(md.find("| e |"), std::string::npos) << md;
  EXPECT_NE(md.find("| Avg. | **"), std::string::npos) << md;
}

TEST(Tables, NamesCannotBeCommands) {
  auto run = two_methods();
  const std::string wild = "\\input{x} ~^_#$%& |<b>`*\n";
  run.header.models = {{.name = wild, .n_layers = 1}};
  for (RunItem& item : run.items) item.model = item.dist = wild;
  for (RunItem& item : run.items)
    if (item.method == "mc") item.variant = wild;
  ThreadPool pool(1);
  const std::vector<TableFile> files = report_tables(make_report(run, pool));
  const std::string tex = table(files, "loss-audit.tex");
  const std::string as_tex =
      "\\textbackslash{}input\\{x\\} \\textasciitilde{}\\textasciicircum{}\\_\\#\\$\\%\\& |<b>`* ";
  std::size_t seen = 0;
  for (std::size_t at = 0; (at = tex.find(as_tex, at)) != std::string::npos; ++at) ++seen;
  EXPECT_EQ(seen, 3u) << "title, column and row of\n" << tex;
  EXPECT_EQ(tex.find("\\input"), std::string::npos);
  const std::string as_md = "\\\\input{x} ~^\\_#$%&amp; \\|&lt;b&gt;\\`\\* ";
  for (const char* name : {"loss-audit.md", "summary.md"}) {
    const std::string md = table(files, name);
    EXPECT_NE(md.find("### " + as_md + "\n"), std::string::npos) << md;
    EXPECT_NE(md.find(" " + as_md + " |"), std::string::npos) << md;
    EXPECT_EQ(md.find("<b>"), std::string::npos);
  }
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

TEST(WhiteningOf, TellsWhyThereIsNone) {
  ThreadPool pool(1);
  Report report{.models = {DEEPTAIL_SOURCE "/models/dt-1l"},
                .dists = {DEEPTAIL_SOURCE "/distributions/caps.json"}};
  Progress told;
  ReportExtras extras = whitening_of(report, pool, [&](const Progress& p) {
    told = p;
    return true;
  });
  EXPECT_EQ(told.done, 1u);
  EXPECT_EQ(told.total, 1u);
  ASSERT_EQ(extras.whitening.size(), 1u);
  EXPECT_EQ(extras.whitening[0].model, report.models[0]);
  EXPECT_GT(extras.whitening[0].before.front(), extras.whitening[0].before.back());

  report.header.models = {{.name = report.models[0], .sha256 = "another"}};
  extras = whitening_of(report, pool);
  EXPECT_TRUE(extras.whitening.empty());
  EXPECT_NE(extras.no_whitening.find("has other weights or another config.json than the run's"),
            std::string::npos);
}

}  // namespace
}  // namespace deeptail
