// The paper's last two tables, for every profile: losses per distribution, a block per model, best in bold.
#include <algorithm>
#include <cmath>
#include <optional>

#include "report/error_tables.h"
#include "report/lookup.h"
#include "report/order_tables.h"
#include "report/table_text.h"

namespace deeptail {

namespace {

struct LossRow {
  std::string label;
  std::vector<double> values;  // [columns], NaN where there is none
  double noise = NAN;
  bool is_average = false;
};
struct LossTable {
  std::string title, row_kind = "Dist.";
  std::vector<std::string> columns;
  std::vector<LossRow> rows;
};

// The mean of a column, when every row has a value: else methods would be compared on different inputs.
double column_mean(const std::vector<LossRow>& rows, std::size_t column) {
  double sum = 0.0;
  for (const LossRow& row : rows) sum += row.values[column];
  return sum / static_cast<double>(rows.size());
}

LossTable model_table(const Report& r, std::size_t model, std::size_t profile) {
  LossTable out{.title = r.models[model], .columns = {}, .rows = {}};
  const std::vector<std::size_t> shown = headline_variants(r);
  for (const std::size_t v : shown) out.columns.push_back(r.variants[v].name);
  double noise = 0.0;
  for (const ReportPair& pair : r.pairs) {
    if (pair.model != model || pair.scored == 0) continue;
    LossRow row{.label = r.dists[pair.dist], .values = {}, .noise = pair.noise[profile].mean};
    for (const std::size_t v : shown) {
      const Score* s = find_score(r, model, pair.dist, v);
      row.values.push_back(s ? s->loss[profile].mean : NAN);
    }
    noise += row.noise;
    out.rows.push_back(std::move(row));
  }
  LossRow mean{.label = "Avg.",
               .values = {},
               .noise = noise / static_cast<double>(out.rows.size()),
               .is_average = true};
  for (std::size_t c = 0; c < shown.size(); ++c) mean.values.push_back(column_mean(out.rows, c));
  out.rows.push_back(std::move(mean));
  return out;
}

std::vector<std::string> cells_of(const LossRow& row, TableForm form) {
  double best = INFINITY;
  for (const double v : row.values)
    if (v < best) best = v;
  std::vector<std::string> out;
  for (const double v : row.values) {
    const std::string text = loss_text(v, form);
    out.push_back(v == best ? bold(text, form) : text);
  }
  out.push_back(loss_text(row.noise, form));
  return out;
}

std::string markdown(const LossTable& table) {
  std::string out =
                  fmt::format("### {}\n\n| {} |", escaped(table.title, TableForm::markdown), table.row_kind),
              rule = "|---|";
  for (const std::string& column : table.columns) {
    out += fmt::format(" {} |", escaped(column, TableForm::markdown));
    rule += "---:|";
  }
  out += " noise of the truth |\n" + rule + "---:|\n";
  for (const LossRow& row : table.rows)
    out += fmt::format("| {} | {} |\n", escaped(row.label, TableForm::markdown),
                       fmt::join(cells_of(row, TableForm::markdown), " | "));
  return out + "\n";
}

std::string latex(const LossTable& table) {
  std::string out =
      fmt::format("\\begin{{tabular}}{{l{}c}}\n\\multicolumn{{{}}}{{c}}{{{}}} \\\\\n\\toprule\nDist.",
                  std::string(table.columns.size(), 'c'), table.columns.size() + 2,
                  escaped(table.title, TableForm::latex));
  for (const std::string& column : table.columns) out += " & " + escaped(column, TableForm::latex);
  out += " & noise \\\\\n\\midrule\n";
  for (const LossRow& row : table.rows) {
    if (row.is_average) out += "\\midrule\n";
    const std::string label = escaped(row.label, TableForm::latex);
    out += fmt::format("{} & {} \\\\\n", row.is_average ? label : fmt::format("\\texttt{{{}}}", label),
                       fmt::join(cells_of(row, TableForm::latex), " & "));
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

// Every setting on every pair: what spreadsheets and scripts want.
std::string scores_csv(const Report& r) {
  std::string out =
      "model,dist,method,variant,targets,estimates,zeros,within_2,covered,truth_above,truth_below";
  for (std::size_t k = 0; k < kReportProfiles; ++k)
    out += fmt::format(",spb_{0},spb_{0}_error,noise_{0}", profiles()[k].name);
  out += ",log_squared,itakura_saito,itakura_saito_calibrated,squared,forward_passes,seconds,scored\n";
  for (const Score& s : r.scores) {
    const auto pair = std::find_if(r.pairs.begin(), r.pairs.end(), [&](const ReportPair& p) {
      return p.model == s.model && p.dist == s.dist;
    });
    out += csv_fields(
        {r.models[s.model], r.dists[s.dist], r.variants[s.variant].method, r.variants[s.variant].name});
    out += fmt::format(",{},{},{},{},{},{},{}", s.targets, s.estimates, s.zeros, s.within_2, s.inside,
                       s.too_low, s.too_high);
    for (std::size_t k = 0; k < kReportProfiles; ++k)
      out += fmt::format(",{},{},{}", s.loss[k].mean, s.loss[k].error, pair->noise[k].mean);
    for (const ReportLoss k : {kLogSquared, kItakuraSaito, kItakuraSaitoCalibrated, kSquared})
      out += fmt::format(",{}", s.loss[k].mean);
    out +=
        fmt::format(",{:.6g},{:.6g},{}\n", std::pow(10.0, s.mean_log10_forwards), s.mean_seconds, s.scored);
  }
  return out;
}

// One profile's tables as plain numbers: model, distribution, then a column per method.
std::string table_csv(const std::vector<LossTable>& tables) {
  std::string out = fmt::format("model,dist,{},noise\n", csv_fields(tables.front().columns));
  for (const LossTable& table : tables)
    for (const LossRow& row : table.rows)
      out += fmt::format("{},{},{}\n", csv_fields({table.title, row.is_average ? "average" : row.label}),
                         fmt::join(row.values, ","), row.noise);
  return out;
}

std::string caption(const Report& r, std::size_t k, TableForm form) {
  const SpbParameters& s = r.spb[k];
  if (form == TableForm::latex)
    return fmt::format(
        "SPB loss, profile {} ($\\alpha={}$, $\\gamma={}$, $\\varepsilon={}$). Lower is better.",
        profiles()[k].name, s.alpha, s.gamma, latex_power(s.epsilon));
  return fmt::format("SPB loss, profile {} (alpha {}, gamma {}, epsilon {:.3g}). Lower is better.",
                     profiles()[k].name, s.alpha, s.gamma, s.epsilon);
}

// Those with at least one truth.
std::vector<std::size_t> scored_models(const Report& r) {
  std::vector<std::size_t> out;
  for (std::size_t m = 0; m < r.models.size(); ++m)
    if (std::any_of(r.pairs.begin(), r.pairs.end(),
                    [&](const ReportPair& p) { return p.model == m && p.scored > 0; }))
      out.push_back(m);
  return out;
}

// The averages alone: a block per model, a row per profile.
std::string summary(const Report& r) {
  std::string out = "SPB loss, mean over the distributions. Lower is better.\n\n";
  for (const std::size_t m : scored_models(r)) {
    LossTable table{.title = r.models[m], .row_kind = "Profile", .columns = {}, .rows = {}};
    for (std::size_t k = 0; k < kReportProfiles; ++k) {
      LossTable whole = model_table(r, m, k);
      table.columns = std::move(whole.columns);
      table.rows.push_back(std::move(whole.rows.back()));
      table.rows.back().label = profiles()[k].name;
    }
    out += markdown(table);
  }
  return out;
}

}  // namespace

std::vector<TableFile> report_tables(const Report& r) {
  if (r.scored() == 0)
    return {{"scores.csv", scores_csv(r)}, {"summary.md", "No truth is known, so there are no losses.\n"}};
  std::vector<TableFile> out{
      {"scores.csv", scores_csv(r)}, {"summary.md", summary(r)}, {"orders.md", order_table(r)}};
  if (std::string settings = settings_table(r); !settings.empty())
    out.push_back({"settings.md", std::move(settings)});
  for (TableFile& file : error_tables(r)) out.push_back(std::move(file));
  for (std::size_t k = 0; k < kReportProfiles; ++k) {
    std::vector<LossTable> tables;
    for (const std::size_t m : scored_models(r)) tables.push_back(model_table(r, m, k));
    std::string md = caption(r, k, TableForm::markdown) + "\n\n";
    std::string tex = fmt::format(
        "% needs "
        "\\usepackage{{booktabs}}\n\\begin{{table}}[ht]\n\\centering\n\\scriptsize\n\\setlength{{\\tabcolsep}"
        "}{{3pt}}\n"
        "\\caption{{{}}}\n",
        caption(r, k, TableForm::latex));
    for (const LossTable& table : tables) {
      md += markdown(table);
      tex += "\\par\\medskip\n" + latex(table);
    }
    tex += "\\end{table}\n";
    const std::string name = fmt::format("loss-{}", profiles()[k].name);
    out.push_back({name + ".csv", table_csv(tables)});
    out.push_back({name + ".md", md});
    out.push_back({name + ".tex", tex});
  }
  return out;
}

}  // namespace deeptail
