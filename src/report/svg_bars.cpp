#include "report/svg_plot.h"
#include "report/svg_scale.h"

namespace deeptail {

namespace {

constexpr double kBarHeight = 13, kBarsWidth = 190, kBarsTop = 30, kBarsGap = 16, kCharacter = 5.6;

void draw_bar(SvgWriter& svg, const BarPanel& panel, std::size_t i, const PlotScale& scale, double left,
              const char* color) {
  if (!scale.shows(panel.value[i])) return;
  const double y = kBarsTop + kBarHeight * static_cast<double>(i), middle = y + kBarHeight / 2;
  svg.add(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{}" fill="{}" fill-opacity="0.45"/>)", left,
          y + 1.5, kBarsWidth * scale.unit(panel.value[i]), kBarHeight - 3, color);
  if (scale.shows(panel.high[i]))
    svg.line(left + kBarsWidth * scale.unit(scale.shows(panel.low[i]) ? panel.low[i] : panel.value[i]),
             middle, left + kBarsWidth * scale.unit(panel.high[i]), middle,
             R"(stroke="#222" stroke-width="1")");
}

}  // namespace

std::string render_bars(const BarPlot& plot) {
  std::size_t longest = 0;
  for (const std::string& name : plot.names) longest = std::max(longest, name.size());
  const double names = 10 + kCharacter * static_cast<double>(longest),
               rows = kBarHeight * static_cast<double>(plot.names.size());
  SvgWriter svg;
  svg.begin(names + (kBarsWidth + kBarsGap) * static_cast<double>(plot.panels.size()), kBarsTop + rows + 40);
  for (std::size_t i = 0; i < plot.names.size(); ++i)
    svg.text(names - 6, kBarsTop + kBarHeight * (static_cast<double>(i) + 0.75), "end",
             "<tspan font-size=\"10\">" + svg_escaped(plot.names[i]) + "</tspan>");
  double left = names;
  for (const BarPanel& panel : plot.panels) {
    std::vector<double> values = panel.value;
    values.insert(values.end(), panel.low.begin(), panel.low.end());
    values.insert(values.end(), panel.high.begin(), panel.high.end());
    const PlotScale scale(true, values);
    for (const double tick : scale.ticks()) {
      const double x = left + kBarsWidth * scale.unit(tick);
      svg.line(x, kBarsTop, x, kBarsTop + rows, kSvgGrid);
      svg.text(x, kBarsTop + rows + 15, "middle", scale.tick_label(tick));
    }
    for (std::size_t i = 0; i < plot.names.size(); ++i)
      draw_bar(svg, panel, i, scale, left, svg_color(plot.colors[i]));
    svg.text(left + kBarsWidth / 2, kBarsTop - 10, "middle",
             "<tspan font-weight=\"bold\">" + svg_escaped(panel.title) + "</tspan>");
    svg.text(left + kBarsWidth / 2, kBarsTop + rows + 32, "middle", svg_escaped(plot.label));
    left += kBarsWidth + kBarsGap;
  }
  return svg.end();
}

}  // namespace deeptail
