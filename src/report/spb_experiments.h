// The paper's synthetic experiments on the loss, as tables and plots.
#pragma once

#include <string>
#include <vector>

#include "report/svg_plot.h"

namespace deeptail {

struct Experiment {
  std::string name;  // of the files, without extension
  std::string what;  // one line
  std::string csv;
  std::vector<PlotPanel> panels;
};

// Section "SPB Loss: Synthetic Data Experiments" and appendix "Empirical verification of SPB scaling
// behavior".
std::vector<Experiment> spb_experiments();
// Of them: the paper's table of losses and their properties, and that of use cases, by numbers.
Experiment loss_properties();
Experiment use_cases();

}  // namespace deeptail
