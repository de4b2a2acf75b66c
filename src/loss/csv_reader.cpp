#include "loss/csv_reader.h"

#include "core/json.h"
#include "deeptail/core.h"

namespace deeptail {

CsvReader::CsvReader(std::string_view text, std::string_view where) : text_(text), where_(where) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
}

bool CsvReader::at_line_end() const {
  const std::string_view rest = text_.substr(at_);
  return rest.empty() || rest.starts_with('\n') || rest.starts_with("\r\n");
}

void CsvReader::skip_line_end() {
  if (at_ == text_.size()) return;
  at_ += text_[at_] == '\r' ? 2 : 1;
  ++line_;
}

std::string CsvReader::quoted_field() {
  const std::size_t opened = line_;
  std::string field;
  for (++at_; at_ < text_.size(); ++at_) {
    const bool quote = text_[at_] == '"', doubled = quote && text_.substr(at_ + 1).starts_with('"');
    if (quote && !doubled) {
      ++at_;
      if (at_line_end() || text_[at_] == ',') return field;
      throw InputError(
          "{}: line {}: expected a comma or the end of the line after a closing quote, found '{}'", where_,
          line_, printable(text_.substr(at_, 1)));
    }
    if (doubled) ++at_;
    if (text_[at_] == '\n') ++line_;
    field += text_[at_];
  }
  throw InputError("{}: line {}: a quoted field starts here and is never closed", where_, opened);
}

std::string CsvReader::plain_field() {
  const std::size_t start = at_;
  while (!at_line_end() && text_[at_] != ',') ++at_;
  return std::string(text_.substr(start, at_ - start));
}

std::optional<CsvRecord> CsvReader::next() {
  while (at_ < text_.size() && at_line_end()) skip_line_end();
  if (at_ == text_.size()) return std::nullopt;
  CsvRecord record{line_, {}};
  while (true) {
    const bool quoted = at_ < text_.size() && text_[at_] == '"';
    record.fields.push_back(quoted ? quoted_field() : plain_field());
    if (at_line_end()) break;
    ++at_;  // the comma
  }
  skip_line_end();
  return record;
}

}  // namespace deeptail
