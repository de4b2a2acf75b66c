#include "report/svg_plot.h"

#include "report/svg_scale.h"

namespace deeptail {

namespace {

constexpr double kLeft = 62, kTop = 34, kBottom = 48, kRight = 18, kLegendRow = 17, kLegendColumn = 150;

struct Scales {
  PlotScale x, y;
  double width, height;  // of the space that data take
  double left(double value) const { return kLeft + width * x.unit(value); }
  double top(double value) const { return kTop + height * (1.0 - y.unit(value)); }
};

Scales scales_of(const PlotPanel& panel, const PlotLayout& layout) {
  std::vector<double> x, y;
  for (const PlotSeries& series : panel.series) {
    x.insert(x.end(), series.x.begin(), series.x.end());
    for (const std::vector<double>* values : {&series.y, &series.low, &series.high})
      y.insert(y.end(), values->begin(), values->end());
  }
  for (const PlotGuide& guide : panel.guides) y.push_back(guide.y);
  return {PlotScale(panel.x.log, x, panel.x.names), PlotScale(panel.y.log, y, panel.y.names), layout.width,
          layout.height};
}

constexpr const char* kGuideStyle = R"(stroke="#444" stroke-width="1.2" stroke-dasharray="2 3")";

void draw_axes(SvgWriter& svg, const PlotPanel& panel, const Scales& scales) {
  const double right = kLeft + scales.width, bottom = kTop + scales.height, middle = kTop + scales.height / 2;
  for (const double tick : scales.x.ticks()) {
    svg.line(scales.left(tick), kTop, scales.left(tick), bottom, kSvgGrid);
    svg.text(scales.left(tick), bottom + 16, "middle", scales.x.tick_label(tick));
  }
  for (const double tick : scales.y.ticks()) {
    svg.line(kLeft, scales.top(tick), right, scales.top(tick), kSvgGrid);
    svg.text(kLeft - 6, scales.top(tick) + 4, "end", scales.y.tick_label(tick));
  }
  svg.add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="#888"/>)", kLeft, kTop,
          scales.width, scales.height);
  svg.text(kLeft + scales.width / 2, kTop - (panel.note.empty() ? 12 : 19), "middle",
           "<tspan font-weight=\"bold\">" + svg_escaped(panel.title) + "</tspan>");
  if (!panel.note.empty())
    svg.text(kLeft + scales.width / 2, kTop - 6, "middle",
             "<tspan font-size=\"9\">" + svg_escaped(panel.note) + "</tspan>");
  svg.text(kLeft + scales.width / 2, bottom + 36, "middle", svg_escaped(panel.x.label));
  svg.add(R"(<text transform='translate(14 {}) rotate(-90)' text-anchor="middle">{}</text>)", middle,
          svg_escaped(panel.y.label));
}

std::string line_style(const PlotSeries& series) {
  return fmt::format(R"(fill="none" stroke="{}" stroke-width="1.8"{})", svg_color(series.color),
                     series.dashed ? R"( stroke-dasharray="6 4")" : "");
}

// Path of y over x, and whether anything of it is seen.
std::string path_of(const std::vector<double>& x, const std::vector<double>& y, const Scales& scales) {
  std::string path;
  bool pen_down = false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool visible = scales.x.shows(x[i]) && scales.y.shows(y[i]);
    if (visible)
      path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", scales.left(x[i]), scales.top(y[i]));
    pen_down = visible;
  }
  return path;
}

void draw_band(SvgWriter& svg, const PlotSeries& series, const Scales& scales) {
  std::vector<double> x(series.x.rbegin(), series.x.rend()), low(series.low.rbegin(), series.low.rend());
  std::string back = path_of(x, low, scales);
  if (!back.empty()) back[0] = 'L';
  svg.add(R"(<path d="{}{}Z" fill="{}" fill-opacity="0.2"/>)", path_of(series.x, series.high, scales), back,
          svg_color(series.color));
}

void draw_point(SvgWriter& svg, const PlotSeries& series, double x, double y) {
  const double r = series.size;
  if (series.mark == PlotMark::points)
    svg.add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}" fill-opacity="{}"/>)", x, y, r,
            svg_color(series.color), r < 2.5 ? 0.45 : 0.85);
  else
    svg.add(R"(<path d="M{:.1f} {:.1f}l{} {}m0 {}l{} {}" stroke="{}" stroke-width="1.3"/>)", x - r, y - r,
            2 * r, 2 * r, -2 * r, -2 * r, 2 * r, svg_color(series.color));
}

void draw_series(SvgWriter& svg, const PlotSeries& series, const Scales& scales) {
  if (series.mark == PlotMark::line)
    return svg.add(R"(<path d="{}" {}/>)", path_of(series.x, series.y, scales), line_style(series));
  if (series.mark == PlotMark::band) return draw_band(svg, series, scales);
  const std::string bar = fmt::format(R"(stroke="{}" stroke-width="1")", svg_color(series.color));
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!scales.x.shows(series.x[i]) || !scales.y.shows(series.y[i])) continue;
    const double x = scales.left(series.x[i]);
    if (i < series.low.size() && scales.y.shows(series.high[i]))  // downwards only as far as the axis goes
      svg.line(x, scales.top(scales.y.shows(series.low[i]) ? series.low[i] : series.y[i]), x,
               scales.top(series.high[i]), bar);
    draw_point(svg, series, x, scales.top(series.y[i]));
  }
}

// Entries of a legend, across as far as `width` goes, then down.
class Legend {
 public:
  Legend(double top, double width) : top_(top), columns_(std::max(1.0, std::floor(width / kLegendColumn))) {}
  void draw(SvgWriter& svg, const PlotPanel& panel) {
    for (const PlotSeries& series : panel.series) {
      if (!series.in_legend) continue;
      const auto [x, y] = next();
      if (series.mark == PlotMark::line)
        svg.line(x, y - 4, x + 26, y - 4, line_style(series));
      else
        draw_point(svg, series, x + 13, y - 4);
      svg.text(x + 33, y, "start", svg_escaped(series.label));
    }
    for (const PlotGuide& guide : panel.guides) {
      const auto [x, y] = next();
      svg.line(x, y - 4, x + 26, y - 4, kGuideStyle);
      svg.text(x + 33, y, "start", svg_escaped(guide.label));
    }
  }
  double rows(std::size_t entries) const { return std::ceil(static_cast<double>(entries) / columns_); }

 private:
  std::pair<double, double> next() {
    const double i = entries_++, row = std::floor(i / columns_);
    return {kLeft + kLegendColumn * (i - row * columns_), top_ + kLegendRow * row};
  }
  double top_, columns_, entries_ = 0.0;
};

std::size_t legend_entries(const PlotPanel& panel) {
  std::size_t rows = panel.guides.size();
  for (const PlotSeries& series : panel.series) rows += series.in_legend;
  return rows;
}

void draw_panel(SvgWriter& svg, const PlotPanel& panel, const PlotLayout& layout) {
  const Scales scales = scales_of(panel, layout);
  draw_axes(svg, panel, scales);
  for (const PlotGuide& guide : panel.guides)
    svg.line(kLeft, scales.top(guide.y), kLeft + scales.width, scales.top(guide.y), kGuideStyle);
  for (const PlotSeries& series : panel.series) draw_series(svg, series, scales);
  if (layout.columns == 0) Legend(kTop + scales.height + kBottom + 10, 0.0).draw(svg, panel);
}

}  // namespace

std::string render_svg(const std::vector<PlotPanel>& panels, const PlotLayout& layout) {
  const std::size_t columns = layout.columns > 0 ? std::min(layout.columns, panels.size()) : panels.size();
  const std::size_t rows = panels.empty() ? 1 : (panels.size() + columns - 1) / columns;
  std::size_t entries = 0;
  for (const PlotPanel& panel : panels) entries = std::max(entries, legend_entries(panel));
  const double panel_width = kLeft + layout.width + kRight, panel_height = kTop + layout.height + kBottom;
  const double width = panel_width * static_cast<double>(columns),
               height = panel_height * static_cast<double>(rows);
  Legend legend(height + 10, layout.columns > 0 ? width - kLeft : 0.0);
  SvgWriter svg;
  svg.begin(width, height + kLegendRow * legend.rows(entries) + 6);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    svg.add(R"(<g transform='translate({} {})'>)", panel_width * static_cast<double>(i % columns),
            panel_height * static_cast<double>(i / columns));
    draw_panel(svg, panels[i], layout);
    svg.add("</g>");
  }
  if (layout.columns > 0 && !panels.empty()) legend.draw(svg, panels.front());
  return svg.end();
}

}  // namespace deeptail
