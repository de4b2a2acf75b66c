// What the C interface's handles hold.
#pragma once

#include <memory>

#include "deeptail/c_api.h"
#include "deeptail/load.h"

struct dt_model {
  deeptail::LoadedModel loaded;
};
struct dt_law {
  std::unique_ptr<deeptail::InputLaw> law;
};
struct dt_head {
  deeptail::Head head;
};
