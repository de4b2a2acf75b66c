// Hands out the tensors of a model's files by name, checks their shapes, and remembers which were used.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "deeptail/tensors.h"

namespace deeptail {

class TensorTaker {
 public:
  enum class After { kKeep, kGiveBack };
  // Both must outlive it. where: for messages. kGiveBack: what was taken is not read again, and its bytes are given
  // back, unless the file has tensors with bytes in common.
  TensorTaker(const TensorMap& tensors, const std::string& where, After after = After::kKeep);

  bool has(const std::string& name) const { return tensors_.contains(name); }
  // Throws InputError when it is missing, has another shape than the config wants, or holds what is no
  // number.
  std::vector<float> take(const std::string& name, std::initializer_list<std::size_t> sizes);
  // Of a tensor [at least rows, columns] the first rows.
  std::vector<float> take_first_rows(const std::string& name, std::size_t rows, std::size_t columns);
  const std::string& where() const { return where_; }
  // Throws InputError for a tensor that was not taken, unless its name ends in one of these: buffers, not
  // weights.
  void refuse_others(std::span<const std::string_view> buffers) const;

 private:
  const TensorMap& tensors_;
  const std::string& where_;
  bool give_back_;
  std::set<std::string> used_;
};

}  // namespace deeptail
