// Splits CSV text into records: RFC 4180 quoting, LF or CRLF, an optional UTF-8 byte order mark, blank lines
// skipped.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deeptail {

struct CsvRecord {
  std::size_t line;                 // where it starts, counted from 1
  std::vector<std::string> fields;  // unquoted
};

class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view where);

  // The next record, or nothing at the end. Throws InputError on broken quoting.
  std::optional<CsvRecord> next();

 private:
  bool at_line_end() const;
  void skip_line_end();
  std::string quoted_field();
  std::string plain_field();

  std::string_view text_;
  std::string where_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace deeptail
