// Plots as SVG text: panels in rows, log or linear axes or names, lines, points, bands and bars.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace deeptail {

struct PlotAxis {
  std::string label;
  bool log = false;
  std::vector<std::string> names = {};  // of the places 0, 1, ..; instead of numbers
};

enum class PlotMark { line, points, crosses, band };

struct PlotSeries {
  std::string label;
  std::vector<double> x,
      y;  // [n]; points that an axis cannot show (not finite, or not positive on a log axis) are left out
  std::size_t color = 0;  // index into a palette readable without colour vision
  bool dashed = false;
  PlotMark mark = PlotMark::line;
  std::vector<double> low = {}, high = {};  // [n] or none: ends of error bars, or the edges of a band
  double size = 3.0;                        // of points
  bool in_legend = true;
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
  std::string note = {};  // a small line below the title
};

// columns 0: all in one row, each with its legend. Otherwise rows of so many, with the first panel's legend
// below them all.
struct PlotLayout {
  std::size_t columns = 0;
  double width = 300, height = 230;  // of the space that data take
};

std::string render_svg(const std::vector<PlotPanel>& panels, const PlotLayout& layout = {});

// Horizontal bars on a log axis, a row per name, a column per panel.
struct BarPanel {
  std::string title;
  std::vector<double> value, low, high;  // [names]; not finite: no bar
};
struct BarPlot {
  std::string label;  // of the axis
  std::vector<std::string> names;
  std::vector<std::size_t> colors;  // [names]
  std::vector<BarPanel> panels;
};
std::string render_bars(const BarPlot& plot);

}  // namespace deeptail
