// Numbers and names as the cells of tables, for Markdown, LaTeX and CSV.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deeptail {

enum class TableForm { markdown, latex };

// 2.42e-12 in LaTeX's math mode.
std::string latex_power(double value);
// As the paper prints losses: two decimals, powers of ten from 10^4 on; small ones keep two digits.
std::string loss_text(double value, TableForm form);
// Text in which nothing is markup or a command.
std::string escaped(std::string_view text, TableForm form);
std::string markdown_text(std::string_view text);
std::string bold(const std::string& text, TableForm form);
std::string csv_fields(const std::vector<std::string>& texts);

}  // namespace deeptail
