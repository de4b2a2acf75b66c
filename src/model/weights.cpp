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
    out.b.insert(out.b.end(), part->b.begin(), part->b.end());
    first += part->out;
  }
  return out;
}

}  // namespace deeptail
