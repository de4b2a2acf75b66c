#include "estimators/ties.h"

#include <algorithm>

namespace deeptail {

namespace {

bool same_column(const PackedMatrix& w, std::size_t a, std::size_t b) {
  if (w.bias()[a] != w.bias()[b]) return false;
  for (std::size_t row = 0; row < w.k(); ++row)
    if (w.at(row, a) != w.at(row, b)) return false;
  return true;
}

}  // namespace

std::vector<TokenId> without_ties(const Head& head, const Target& target) {
  std::vector<TokenId> out, same;
  for (const TokenId t : target.ids()) {
    same.clear();
    for (std::size_t k = 0; k < head.d_vocab(); ++k)
      if (same_column(head.w_u, k, static_cast<std::size_t>(t))) same.push_back(static_cast<TokenId>(k));
    // Of these the smallest is said, if any.
    if (target.contains(same.front())) out.insert(out.end(), same.begin(), same.end());
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace deeptail
