#include "model/weights.h"

#include <algorithm>

namespace deeptail {

Matrix side_by_side(std::initializer_list<const Matrix*> parts) {
  Matrix out{.in = (*parts.begin())->in};
  for (const Matrix* part : parts) out.out += part->out;
  out.w.resize(out.in * out.out);
  std::size_t first = 0;
  for (const Matrix* part : parts) {
    for (std::size_t i = 0; i < part->in; ++i)
      std::copy_n(part->w.data() + i * part->out, part->out, out.w.data() + i * out.out + first);
    first += part->out;
  }
  if (std::ranges::all_of(parts, [](const Matrix* part) { return part->b.empty(); })) return out;
  for (const Matrix* part : parts) {
    out.b.insert(out.b.end(), part->b.begin(), part->b.end());
    if (part->b.empty()) out.b.resize(out.b.size() + part->out, 0.0f);
  }
  return out;
}

}  // namespace deeptail
