#include "report/error_tables.h"

#include <cmath>

#include "report/table_text.h"

namespace deeptail {

namespace {

constexpr std::string_view kErrorColumns[] = {"estimates",         "zeros",        "zeros below 1e-7",
                                              "too high",          "median",       "standard deviation",
                                              "median below 1e-7", "median above", "within a factor of 2"};
static_assert(kRareTruth == 1e-7, "as the columns say");

std::string ratio_text(double log10_ratio) {
  if (std::isnan(log10_ratio)) return "-";
  const std::string text = fmt::format("{:.2f}", log10_ratio);
  return text == "-0.00" ? "0.00" : text;
}

std::string share_text(std::size_t part, std::size_t whole, TableForm form) {
  if (whole == 0) return "-";
  return fmt::format("{:.0f}{}", 100.0 * static_cast<double>(part) / static_cast<double>(whole),
                     form == TableForm::latex ? "\\,\\%" : " %");
}

// Shares: of too high answers among those that are not zero, of those within a factor of 2 among all.
std::vector<std::string> error_cells(const ErrorSummary& e, TableForm form) {
  return {fmt::format("{}", e.estimates),
          fmt::format("{}", e.zeros),
          e.rare > 0 ? fmt::format("{} of {}", e.rare_zeros, e.rare) : "-",
          share_text(e.too_high, e.estimates - e.zeros, form),
          ratio_text(e.median),
          ratio_text(e.deviation),
          ratio_text(e.median_rare),
          ratio_text(e.median_common),
          share_text(e.within_2, e.estimates, form)};
}

std::string errors_markdown(const Report& r) {
  std::string out =
      "log10 of estimate over truth. Medians and the standard deviation are of the estimates that are not "
      "zero, as is the share that is too high; the share within a factor of 2 is of all.\n\n| Model | Method "
      "|";
  std::string rule = "|---|---|";
  for (const std::string_view column : kErrorColumns) {
    out += fmt::format(" {} |", column);
    rule += "---:|";
  }
  out += "\n" + rule + "\n";
  for (const ErrorSummary& e : r.errors)
    out += fmt::format("| {} | {} | {} |\n", markdown_text(r.models[e.model]),
                       markdown_text(r.variants[e.variant].name),
                       fmt::join(error_cells(e, TableForm::markdown), " | "));
  return out;
}

std::string errors_latex(const Report& r) {
  std::string out = fmt::format(
      "% needs \\usepackage{{booktabs}}\n\\begin{{table}}[ht]\n\\centering\n\\scriptsize\n"
      "\\caption{{$\\log_{{10}}$ of estimate over truth.}}\n\\begin{{tabular}}{{ll{}}}\n\\toprule\nModel & "
      "Method",
      std::string(std::size(kErrorColumns), 'r'));
  for (const std::string_view column : kErrorColumns) out += fmt::format(" & {}", column);
  out += " \\\\\n\\midrule\n";
  for (std::size_t i = 0; i < r.errors.size(); ++i) {
    const ErrorSummary& e = r.errors[i];
    if (i > 0 && e.model != r.errors[i - 1].model) out += "\\midrule\n";
    out += fmt::format("{} & {} & {} \\\\\n", escaped(r.models[e.model], TableForm::latex),
                       escaped(r.variants[e.variant].name, TableForm::latex),
                       fmt::join(error_cells(e, TableForm::latex), " & "));
  }
  return out + "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

std::string errors_csv(const Report& r) {
  std::string out =
      "model,method,variant,targets,estimates,zeros,below_1e-7,zeros_below_1e-7,too_high,within_2,median,"
      "mean,"
      "standard_deviation,median_below_1e-7,median_above,lowest,highest\n";
  for (const ErrorSummary& e : r.errors) {
    const ReportVariant& v = r.variants[e.variant];
    out += csv_fields({r.models[e.model], v.method, v.name});
    out += fmt::format(",{},{},{},{},{},{},{}", e.targets, e.estimates, e.zeros, e.rare, e.rare_zeros,
                       e.too_high, e.within_2);
    for (const double x :
         {e.median, e.mean, e.deviation, e.median_rare, e.median_common, e.lowest, e.highest})
      out += fmt::format(",{:.6g}", x);
    out += "\n";
  }
  return out;
}

std::string answered_markdown(const Report& r) {
  std::string out =
      "Losses without a shift, mean over the targets that every method of a table has estimated, none of "
      "them as zero. Methods whose estimates are mostly zeros are left out.\n\n";
  for (const AnsweredLosses& a : r.answered) {
    out += fmt::format("### {}: {} of {} targets\n\n| SPB |", markdown_text(r.models[a.model]), a.targets,
                       a.of_targets);
    std::string rule = "|---|";
    for (const std::size_t v : a.variants) {
      out += fmt::format(" {} |", markdown_text(r.variants[v].name));
      rule += "---:|";
    }
    out += "\n" + rule + "\n";
    for (std::size_t k = 0; k < kReportProfiles; ++k) {
      out += fmt::format("| ({:g}, {:g}) |", r.spb[k].alpha, r.spb[k].gamma);
      for (const auto& losses : a.loss)
        out += fmt::format(" {} |", loss_text(losses[k], TableForm::markdown));
      out += "\n";
    }
    out += "\n";
  }
  return out;
}

std::string answered_csv(const Report& r) {
  std::string out = "model,method,variant,targets,of_targets";
  for (std::size_t k = 0; k < kReportProfiles; ++k) out += fmt::format(",spb_{}", profiles()[k].name);
  out += "\n";
  for (const AnsweredLosses& a : r.answered)
    for (std::size_t i = 0; i < a.variants.size(); ++i) {
      const ReportVariant& v = r.variants[a.variants[i]];
      out += csv_fields({r.models[a.model], v.method, v.name});
      out += fmt::format(",{},{}", a.targets, a.of_targets);
      for (const double loss : a.loss[i]) out += fmt::format(",{:.6g}", loss);
      out += "\n";
    }
  return out;
}

}  // namespace

std::vector<TableFile> error_tables(const Report& r) {
  return {{"errors.csv", errors_csv(r)},
          {"errors.md", errors_markdown(r)},
          {"errors.tex", errors_latex(r)},
          {"answered.csv", answered_csv(r)},
          {"answered.md", answered_markdown(r)}};
}

}  // namespace deeptail
