#include <charconv>
#include <cmath>

#include "core/json.h"
#include "deeptail/loss.h"
#include "loss/csv_reader.h"

namespace deeptail {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::size_t find_column(const CsvRecord& header, std::string_view wanted, std::string_view where) {
  std::optional<std::size_t> found;
  std::string names;
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    const std::string_view column = trimmed(header.fields[i]);
    if (column == wanted) {
      if (found)
        throw InputError("{}: line {}: the column '{}' appears twice in the header", where, header.line,
                         wanted);
      found = i;
    }
    names += (names.empty() ? "" : ", ") + printable(column);
  }
  if (found) return *found;
  const bool other_separator = header.fields.size() == 1 && names.find_first_of(";\\") != std::string::npos;
  throw InputError("{}: line {}: no column is called '{}', found: {}{}", where, header.line, wanted,
                   printable(names, 200), other_separator ? " (columns must be separated by commas)" : "");
}

// Independent of the locale: a decimal comma is never accepted, a decimal point always.
double parse_number(std::string_view field, std::string_view column, std::string_view where,
                    std::size_t line) {
  std::string_view text = trimmed(field);
  if (text.empty()) throw InputError("{}: line {}: the {} is empty, expected a number", where, line, column);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    throw InputError("{}: line {}: the {} '{}' is outside the range of double precision", where, line, column,
                     printable(text));
  if (error != std::errc() || end != text.data() + text.size())
    throw InputError("{}: line {}: the {} '{}' is not a number", where, line, column, printable(text));
  if (std::isnan(value)) throw InputError("{}: line {}: the {} is not a number (nan)", where, line, column);
  return value;
}

}  // namespace

Pairs parse_pairs(std::string_view csv, std::string_view where, std::span<const std::string> by) {
  CsvReader reader(csv, where);
  const std::optional<CsvRecord> header = reader.next();
  if (!header)
    throw InputError("{}: the file is empty, expected a header with the columns truth,estimate", where);
  const std::size_t truth_column = find_column(*header, "truth", where);
  const std::size_t estimate_column = find_column(*header, "estimate", where);

  std::vector<std::size_t> group_columns;
  for (const std::string& name : by) group_columns.push_back(find_column(*header, name, where));

  Pairs pairs;
  while (const std::optional<CsvRecord> row = reader.next()) {
    if (row->fields.size() != header->fields.size())
      throw InputError("{}: line {}: expected {} fields as in the header, found {}", where, row->line,
                       header->fields.size(), row->fields.size());
    const double q = parse_number(row->fields[truth_column], "truth", where, row->line);
    const double p = parse_number(row->fields[estimate_column], "estimate", where, row->line);
    if (!(q > 0.0 && q < 1.0))
      throw InputError("{}: line {}: the truth must lie strictly between 0 and 1, found {}", where, row->line,
                       q);
    if (!(p >= 0.0 && p <= 1.0))
      throw InputError("{}: line {}: the estimate must lie between 0 and 1, found {}", where, row->line, p);
    pairs.truth.push_back(q);
    pairs.estimate.push_back(p);
    pairs.line.push_back(row->line);
    if (by.empty()) continue;
    std::vector<std::string>& group = pairs.group.emplace_back();
    for (const std::size_t column : group_columns) group.emplace_back(trimmed(row->fields[column]));
  }
  if (pairs.truth.empty()) throw InputError("{}: there is a header but no row below it", where);
  return pairs;
}

}  // namespace deeptail
