// Axes of SVG plots: data to the unit interval, and ticks.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "report/svg_writer.h"

namespace deeptail {

// Maps data to the unit interval and knows its ticks.
class PlotScale {
 public:
  // names: of the places 0, 1, ..; they then are the ticks.
  PlotScale(bool log, const std::vector<double>& values, std::vector<std::string> names = {})
      : log_(log), names_(std::move(names)) {
    if (!names_.empty()) {
      low_ = -0.5, high_ = static_cast<double>(names_.size()) - 0.5;
      return;
    }
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

  std::vector<double> ticks() const {
    std::vector<double> places;
    for (std::size_t i = 0; i < names_.size(); ++i) places.push_back(static_cast<double>(i));
    return !names_.empty() ? places : log_ ? log_ticks() : linear_ticks();
  }

  std::string tick_label(double value) const {
    if (!names_.empty()) return svg_escaped(names_[static_cast<std::size_t>(value)]);
    if (!log_ || (value > 0.005 && value < 9999.0)) return fmt::format("{:.4g}", value);
    const double decade = std::floor(std::log10(value) + 1e-9), digit = value / std::pow(10.0, decade);
    const std::string power = fmt::format("10<tspan dy=\"-5\" font-size=\"8\">{:.0f}</tspan>", decade);
    return digit < 1.5 ? power : fmt::format("{:.0f}e{:.0f}", digit, decade);
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
  std::vector<std::string> names_;
  double low_ = INFINITY, high_ = -INFINITY;
};

}  // namespace deeptail
