// Runs build/deeptail as a user does: arguments in, output, errors and exit code back.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/json.h"

namespace deeptail {

struct Outcome {
  int code = 0;
  std::string out, err;
};

// A folder of its own for every test; deeptail runs in the project's root unless told otherwise.
class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "deeptail-cli-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~CliTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return path(name);
  }
  static std::string read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  Outcome run(const std::string& arguments) const {
    const std::string command = std::string("cd '") + DEEPTAIL_SOURCE + "' && { '" + DEEPTAIL_BINARY + "' " +
                                arguments + "; } 2>'" + path("stderr") + "'";
    FILE* pipe = ::popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    Outcome outcome;
    std::array<char, 4096> buffer;
    for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      outcome.out.append(buffer.data(), n);
    outcome.code = WEXITSTATUS(::pclose(pipe));
    outcome.err = read(path("stderr"));
    return outcome;
  }

  Json json(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return parse_json(outcome.out, "output of deeptail " + arguments);
  }

  // Exit code 2, nothing on stdout, one line on stderr that holds `part`.
  void refused(const std::string& arguments, const std::string& part) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

  std::filesystem::path folder_;
};

}  // namespace deeptail
