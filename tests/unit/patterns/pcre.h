// PCRE2 as an oracle: whether a regular expression matches somewhere in a text of any bytes.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <optional>
#include <string_view>

namespace deeptail {

class Pcre {
 public:
  // NO_DOTSTAR_ANCHOR: what begins with .* is tried behind bytes that are no UTF-8 as well.
  explicit Pcre(std::string_view pattern) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_DOTSTAR_ANCHOR,
                      &error, &at, nullptr));
    if (code_) data_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }
  bool is_valid() const { return code_ != nullptr; }
  // Nothing where it gives up.
  std::optional<bool> matches(std::string_view text) const {
    const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                                  data_.get(), nullptr);
    if (found >= 0) return true;
    return found == PCRE2_ERROR_NOMATCH ? std::optional(false) : std::nullopt;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> data_;
};

}  // namespace deeptail
