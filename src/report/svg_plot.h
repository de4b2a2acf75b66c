// Line plots as SVG text: panels side by side, log or linear axes, a legend below each panel.
#pragma once

#include <string>
#include <vector>

namespace deeptail {

struct PlotAxis {
  std::string label;
  bool log = false;
};

struct PlotSeries {
  std::string label;
  std::vector<double> x,
      y;  // [n]; points that an axis cannot show (not finite, or not positive on a log axis) are left out
  std::size_t color = 0;  // index into a palette readable without colour vision
  bool dashed = false;
};

// A horizontal line, such as a tolerance.
struct PlotGuide {
  std::string label;
  double y;
};

struct PlotPanel {
  std::string title;
  PlotAxis x, y;
  std::vector<PlotSeries> series;
  std::vector<PlotGuide> guides = {};
};

std::string render_svg(const std::vector<PlotPanel>& panels);

}  // namespace deeptail
