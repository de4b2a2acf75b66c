// Tables of relative frequencies, frozen into the text of a distribution's file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deeptail/core.h"

namespace deeptail {

using Frequencies = std::map<TokenId, double>;  // relative, each above 0

// Whole numbers that sum to 2^32, each at least 1, by largest remainders: [frequencies].
std::vector<std::uint64_t> quantise(std::span<const double> frequencies);

// The tables of a distribution and the one of each position, in the order in which they were added.
class FrozenTables {
 public:
  // A table of the name that is there already stays.
  void add(const std::string& name, Frequencies table);
  void repeat(const std::string& name, std::size_t times = 1);

  struct Facts {
    std::string name, description, tokenizer_sha256;
    std::size_t d_vocab = 0;
  };
  std::string text(const Facts& facts) const;  // deeptail-distribution-1, with a line's end

 private:
  std::vector<std::pair<std::string, Frequencies>> tables_;
  std::vector<std::string> positions_;
};

}  // namespace deeptail
