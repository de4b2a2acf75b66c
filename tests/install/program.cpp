// A program outside the tree: all it knows is the installed library.
#include <deeptail/deeptail.h>

#include <cstdio>

int main() {
  const auto m = deeptail::Transformer::load(deeptail::find_model("dt-1l"));
  std::puts(m.config().model_name.c_str());
}
