// Elements of SVG, one a line.
#pragma once

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string>

namespace deeptail {

// Okabe and Ito's palette, and two more.
inline constexpr std::array kSvgColors{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                       "#56b4e9", "#000000", "#8c6a2f", "#6b7280"};
inline const char* svg_color(std::size_t color) { return kSvgColors[color % kSvgColors.size()]; }

inline std::string svg_escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

class SvgWriter {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
    out_ += '\n';
  }
  void line(double x1, double y1, double x2, double y2, const std::string& style) {
    add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" {}/>)", x1, y1, x2, y2, style);
  }
  void text(double x, double y, const char* anchor, const std::string& markup) {
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor, markup);
  }
  void begin(double width, double height) {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
        R"(font-family="Helvetica, Arial, sans-serif" font-size="11" fill="#222">)",
        width, height);
    add(R"(<rect width="100%" height="100%" fill="#fff"/>)");
  }
  std::string end() {
    add("</svg>");
    return std::move(out_);
  }

 private:
  std::string out_;
};

inline constexpr const char* kSvgGrid = R"(stroke="#e4e4e4")";

}  // namespace deeptail
