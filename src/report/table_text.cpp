#include "report/table_text.h"

#include <cmath>

#include "core/csv.h"
#include "deeptail/core.h"

namespace deeptail {

namespace {

// A character of a name as LaTeX prints it: none of them may begin a command.
std::string latex_character(char c) {
  switch (c) {
    case '\\':
      return "\\textbackslash{}";
    case '^':
      return "\\textasciicircum{}";
    case '~':
      return "\\textasciitilde{}";
    case '\n':
    case '\r':
      return " ";
    default:
      return std::string_view("{}_%&#$").find(c) != std::string_view::npos ? fmt::format("\\{}", c)
                                                                           : std::string(1, c);
  }
}

// Likewise for Markdown, where HTML would pass and a line end would end the table.
std::string markdown_character(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\n':
    case '\r':
      return " ";
    default:
      return std::string_view("\\|`*_[]").find(c) != std::string_view::npos ? fmt::format("\\{}", c)
                                                                            : std::string(1, c);
  }
}

}  // namespace

std::string latex_power(double value) {
  const std::string text = fmt::format("{:.2e}", value);
  const std::size_t e = text.find('e');
  return fmt::format("{}{{\\times}}10^{{{}}}", text.substr(0, e), std::stoi(text.substr(e + 1)));
}

std::string loss_text(double value, TableForm form) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return form == TableForm::latex ? "$\\infty$" : "inf";
  if (value == 0.0) return "0";
  if (value >= 0.095 && value < 9999.995) return fmt::format("{:.2f}", value);
  if (value >= 0.00095 && value < 0.095) return fmt::format("{:#.2g}", value);
  return form == TableForm::latex ? fmt::format("${}$", latex_power(value)) : fmt::format("{:.2e}", value);
}

std::string escaped(std::string_view text, TableForm form) {
  std::string out;
  for (const char c : text) out += form == TableForm::latex ? latex_character(c) : markdown_character(c);
  return out;
}

std::string bold(const std::string& text, TableForm form) {
  return form == TableForm::latex ? fmt::format("\\textbf{{{}}}", text) : fmt::format("**{}**", text);
}

std::string markdown_text(std::string_view text) { return escaped(text, TableForm::markdown); }

std::string csv_fields(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += fmt::format("{}{}", out.empty() ? "" : ",", csv_field(text));
  return out;
}

}  // namespace deeptail
