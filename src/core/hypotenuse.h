// std::hypot for numbers whose squares neither overflow nor vanish. That of glibc 2.35 is another symbol than before, and a
// library that uses it runs nowhere older.
#pragma once

#include <cmath>

namespace deeptail {

inline double hypotenuse(double a, double b) { return std::sqrt(a * a + b * b); }

}  // namespace deeptail
