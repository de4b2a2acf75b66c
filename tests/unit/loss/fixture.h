// Reads the reference tables of tests/data/loss, written by tests/reference/spb_fixture.py.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace deeptail::test {

// Rows of numbers below a header line. Fails the test when the file is missing.
inline std::vector<std::vector<double>> read_table(const std::string& file) {
  std::ifstream in(std::string(DEEPTAIL_TEST_DATA) + "/loss/" + file);
  EXPECT_TRUE(in) << file;
  std::vector<std::vector<double>> rows;
  std::string line, field;
  for (std::getline(in, line); std::getline(in, line);) {
    std::istringstream fields(line);
    rows.emplace_back();
    while (std::getline(fields, field, ',')) rows.back().push_back(std::strtod(field.c_str(), nullptr));
  }
  return rows;
}

// 0 where both are equal, also at zero and infinity.
inline double relative_error(double found, double expected) {
  return found == expected ? 0.0 : std::abs(found - expected) / std::abs(expected);
}

}  // namespace deeptail::test
