#include "report/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace deeptail {

namespace {

// Okabe and Ito's palette.
constexpr std::array kColors{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};

constexpr double kLeft = 62, kTop = 34, kPlotWidth = 300, kPlotHeight = 230, kBottom = 48, kRight = 18,
                 kLegendRow = 17;
constexpr double kPanelWidth = kLeft + kPlotWidth + kRight;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

// Maps data to the unit interval and knows its ticks.
class Scale {
 public:
  Scale(bool log, const std::vector<double>& values) : log_(log) {
    for (const double value : values)
      if (shows(value)) {
        low_ = std::min(low_, position(value));
        high_ = std::max(high_, position(value));
      }
    if (!(low_ <= high_)) low_ = 0.0, high_ = 1.0;
    const double pad = std::max(0.04 * (high_ - low_), low_ == high_ ? 0.5 : 0.0);
    low_ -= pad, high_ += pad;
  }

  bool shows(double value) const { return std::isfinite(value) && (!log_ || value > 0.0); }
  double unit(double value) const { return (position(value) - low_) / (high_ - low_); }

  std::vector<double> ticks() const { return log_ ? log_ticks() : linear_ticks(); }

  std::string tick_label(double value) const {
    if (!log_ || (value > 0.005 && value < 9999.0)) return fmt::format("{:.4g}", value);
    return fmt::format("10<tspan dy=\"-5\" font-size=\"8\">{:.0f}</tspan>", std::log10(value));
  }

 private:
  double position(double value) const { return log_ ? std::log10(value) : value; }

  std::vector<double> log_ticks() const {
    std::vector<double> out;
    const double step = std::ceil((high_ - low_) / 7.0);
    for (double decade = std::ceil(low_ / step) * step; decade <= high_; decade += step)
      out.push_back(std::pow(10.0, decade));
    if (out.size() >= 3) return out;
    out.clear();
    for (double decade = std::floor(low_); decade <= high_; ++decade)
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double value = digit * std::pow(10.0, decade);
        if (position(value) >= low_ && position(value) <= high_) out.push_back(value);
      }
    return out;
  }

  std::vector<double> linear_ticks() const {
    const double rough = (high_ - low_) / 5.0, decade = std::pow(10.0, std::floor(std::log10(rough)));
    const double step = decade * (rough / decade < 1.5 ? 1.0 : rough / decade < 3.5 ? 2.0 : 5.0);
    std::vector<double> out;
    for (double k = std::ceil(low_ / step); k * step <= high_; ++k) out.push_back(k * step + 0.0);
    return out;
  }

  bool log_;
  double low_ = INFINITY, high_ = -INFINITY;
};

struct Scales {
  Scale x, y;
  double left(double value) const { return kLeft + kPlotWidth * x.unit(value); }
  double top(double value) const { return kTop + kPlotHeight * (1.0 - y.unit(value)); }
};

Scales scales_of(const PlotPanel& panel) {
  std::vector<double> x, y;
  for (const PlotSeries& series : panel.series) {
    x.insert(x.end(), series.x.begin(), series.x.end());
    y.insert(y.end(), series.y.begin(), series.y.end());
  }
  for (const PlotGuide& guide : panel.guides) y.push_back(guide.y);
  return {Scale(panel.x.log, x), Scale(panel.y.log, y)};
}

class Writer {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
    out_ += '\n';
  }
  void line(double x1, double y1, double x2, double y2, const char* style) {
    add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" {}/>)", x1, y1, x2, y2, style);
  }
  void text(double x, double y, const char* anchor, const std::string& markup) {
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor, markup);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

constexpr const char* kGuideStyle = R"(stroke="#444" stroke-width="1.2" stroke-dasharray="2 3")";

void draw_axes(Writer& svg, const PlotPanel& panel, const Scales& scales) {
  constexpr const char* kGrid = R"(stroke="#e4e4e4")";
  const double right = kLeft + kPlotWidth, bottom = kTop + kPlotHeight, middle = kTop + kPlotHeight / 2;
  for (const double tick : scales.x.ticks()) {
    svg.line(scales.left(tick), kTop, scales.left(tick), bottom, kGrid);
    svg.text(scales.left(tick), bottom + 16, "middle", scales.x.tick_label(tick));
  }
  for (const double tick : scales.y.ticks()) {
    svg.line(kLeft, scales.top(tick), right, scales.top(tick), kGrid);
    svg.text(kLeft - 6, scales.top(tick) + 4, "end", scales.y.tick_label(tick));
  }
  svg.add(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="none" stroke="#888"/>)", kLeft, kTop,
          kPlotWidth, kPlotHeight);
  svg.text(kLeft + kPlotWidth / 2, kTop - 12, "middle",
           "<tspan font-weight=\"bold\">" + escaped(panel.title) + "</tspan>");
  svg.text(kLeft + kPlotWidth / 2, bottom + 36, "middle", escaped(panel.x.label));
  svg.add(R"(<text transform='translate(14 {}) rotate(-90)' text-anchor="middle">{}</text>)", middle,
          escaped(panel.y.label));
}

std::string series_style(const PlotSeries& series) {
  return fmt::format(R"(fill="none" stroke="{}" stroke-width="1.8"{})",
                     kColors[series.color % kColors.size()],
                     series.dashed ? R"( stroke-dasharray="6 4")" : "");
}

void draw_series(Writer& svg, const PlotSeries& series, const Scales& scales) {
  std::string path;
  bool pen_down = false;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const bool visible = scales.x.shows(series.x[i]) && scales.y.shows(series.y[i]);
    if (visible)
      path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", scales.left(series.x[i]),
                          scales.top(series.y[i]));
    pen_down = visible;
  }
  svg.add(R"(<path d="{}" {}/>)", path, series_style(series));
}

void draw_legend(Writer& svg, const PlotPanel& panel) {
  double y = kTop + kPlotHeight + kBottom + 10;
  const auto entry = [&](const std::string& label, const std::string& style) {
    svg.line(kLeft, y - 4, kLeft + 26, y - 4, style.c_str());
    svg.text(kLeft + 33, y, "start", escaped(label));
    y += kLegendRow;
  };
  for (const PlotSeries& series : panel.series) entry(series.label, series_style(series));
  for (const PlotGuide& guide : panel.guides) entry(guide.label, kGuideStyle);
}

void draw_panel(Writer& svg, const PlotPanel& panel, double offset) {
  const Scales scales = scales_of(panel);
  svg.add(R"(<g transform='translate({} 0)'>)", offset);
  draw_axes(svg, panel, scales);
  for (const PlotGuide& guide : panel.guides)
    svg.line(kLeft, scales.top(guide.y), kLeft + kPlotWidth, scales.top(guide.y), kGuideStyle);
  for (const PlotSeries& series : panel.series) draw_series(svg, series, scales);
  draw_legend(svg, panel);
  svg.add("</g>");
}

}  // namespace

std::string render_svg(const std::vector<PlotPanel>& panels) {
  std::size_t legend_rows = 0;
  for (const PlotPanel& panel : panels)
    legend_rows = std::max(legend_rows, panel.series.size() + panel.guides.size());
  const double width = kPanelWidth * static_cast<double>(panels.size());
  const double height = kTop + kPlotHeight + kBottom + kLegendRow * static_cast<double>(legend_rows) + 6;
  Writer svg;
  svg.add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
          R"(font-family="Helvetica, Arial, sans-serif" font-size="11" fill="#222">)",
          width, height);
  svg.add(R"(<rect width="100%" height="100%" fill="#fff"/>)");
  for (std::size_t i = 0; i < panels.size(); ++i)
    draw_panel(svg, panels[i], kPanelWidth * static_cast<double>(i));
  svg.add("</svg>");
  return svg.take();
}

}  // namespace deeptail
