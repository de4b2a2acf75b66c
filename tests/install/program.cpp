// A program outside the tree: all it knows is the installed library.
#include <deeptail/deeptail.h>

#include <cstdio>

int main() {
  const auto m = deeptail::load_model("dt-1l");
  std::puts(m.name.c_str());
}
