// The smallest model that reads these laws. Scores are not its own: it only has to be there.
#pragma once

#include "deeptail/model.h"

namespace deeptail::modes {

Transformer stub_model();

}  // namespace deeptail::modes
