#include <gtest/gtest.h>

#include "deeptail/loss.h"

namespace deeptail {
namespace {

struct Good {
  const char* name;
  std::string csv;
};

class ReadsPairs : public testing::TestWithParam<Good> {};

// Every file says the same two pairs.
TEST_P(ReadsPairs, InManyDialects) {
  const Pairs pairs = parse_pairs(GetParam().csv, "pairs.csv");
  EXPECT_EQ(pairs.truth, (std::vector<double>{1e-9, 0.25}));
  EXPECT_EQ(pairs.estimate, (std::vector<double>{0.0, 1.0}));
}

INSTANTIATE_TEST_SUITE_P(
    Csv, ReadsPairs,
    testing::Values(Good{"plain", "truth,estimate\n1e-9,0\n0.25,1\n"},
                    Good{"no_final_newline", "truth,estimate\n1e-9,0\n0.25,1"},
                    Good{"crlf", "truth,estimate\r\n1e-9,0\r\n0.25,1\r\n"},
                    Good{"byte_order_mark", "\xef\xbb\xbftruth,estimate\n1e-9,0\n0.25,1\n"},
                    Good{"other_order", "estimate,truth\n0,1e-9\n1,0.25\n"},
                    Good{"more_columns", "id,truth,note,estimate\n7,1e-9,,0\n8,0.25,x,1\n"},
                    Good{"quotes", "\"truth\",\"estimate\"\n\"1e-9\",\"0\"\n\"0.25\",1\n"},
                    Good{"quoted_commas_and_lines",
                         "token,truth,estimate\n\" a, \"\"b\"\"\",1e-9,0\n\"two\nlines\",0.25,1\n"},
                    Good{"blanks", " truth ,\testimate\n 1e-9 , 0\n0.25\t, 1 \n"},
                    Good{"spellings", "truth,estimate\n1.0E-09,0.000\n+.25,1e0\n"},
                    Good{"blank_lines", "\ntruth,estimate\n1e-9,0\n\n0.25,1\n\r\n\n"},
                    Good{"minus_zero", "truth,estimate\n1e-9,-0\n0.25,1\n"}),
    [](const auto& row) { return row.param.name; });

struct Bad {
  const char* name;
  std::string csv;
  const char* message;  // part of it
};

class RefusesPairs : public testing::TestWithParam<Bad> {};

TEST_P(RefusesPairs, WithOneSentence) {
  try {
    parse_pairs(GetParam().csv, "pairs.csv");
    FAIL() << "accepted";
  } catch (const InputError& e) {
    const std::string message = e.what();
    EXPECT_TRUE(message.starts_with("pairs.csv: ")) << message;
    EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Csv, RefusesPairs,
    testing::Values(
        Bad{"empty", "", "the file is empty"}, Bad{"only_blank_lines", "\n\r\n", "the file is empty"},
        Bad{"header_only", "truth,estimate\n", "no row below it"},
        Bad{"missing_truth", "q,estimate\n1,2\n", "line 1: no column is called 'truth', found: q, estimate"},
        Bad{"missing_estimate", "truth,p\n1,2\n", "no column is called 'estimate'"},
        Bad{"no_header", "1e-9,0\n", "no column is called 'truth'"},
        Bad{"semicolons", "truth;estimate\n", "separated by commas"},
        Bad{"tabs", "truth\testimate\n", "separated by commas"},
        Bad{"twice", "truth,estimate,truth\n", "'truth' appears twice"},
        Bad{"short_row", "truth,estimate\n0.1,0\n0.5\n",
            "line 3: expected 2 fields as in the header, found 1"},
        Bad{"long_row", "truth,estimate\n0.1,0,3\n", "line 2: expected 2 fields as in the header, found 3"},
        Bad{"word", "truth,estimate\n0.1,zero\n", "line 2: the estimate 'zero' is not a number"},
        Bad{"trailing_letters", "truth,estimate\n0.1x,0\n", "the truth '0.1x' is not a number"},
        Bad{"decimal_comma", "truth,estimate\n\"0,1\",0\n", "the truth '0,1' is not a number"},
        Bad{"empty_field", "truth,estimate\n,0\n", "line 2: the truth is empty"},
        Bad{"nan", "truth,estimate\n0.1,nan\n", "line 2: the estimate is not a number (nan)"},
        Bad{"truth_zero", "truth,estimate\n0.1,0\n0,0\n",
            "line 3: the truth must lie strictly between 0 and 1, found 0"},
        Bad{"truth_one", "truth,estimate\n1,0\n", "the truth must lie strictly between 0 and 1"},
        Bad{"truth_negative", "truth,estimate\n-0.1,0\n", "the truth must lie strictly between 0 and 1"},
        Bad{"truth_infinite", "truth,estimate\ninf,0\n", "the truth must lie strictly between 0 and 1"},
        Bad{"estimate_above", "truth,estimate\n0.1,1.0000001\n",
            "line 2: the estimate must lie between 0 and 1"},
        Bad{"estimate_below", "truth,estimate\n0.1,-1e-300\n", "the estimate must lie between 0 and 1"},
        Bad{"out_of_range", "truth,estimate\n1e-400,0\n", "outside the range of double precision"},
        Bad{"open_quote", "truth,estimate\n0.1,0\n\"0.1,0\n0.2,0\n", "line 3: a quoted field starts here"},
        Bad{"after_quote", "truth,estimate\n\"0.1\"x,0\n", "line 2: expected a comma or the end of the line"},
        Bad{"line_after_quoted_newline", "t,truth,estimate\n\"a\nb\",0.1,0\nc,2,0\n", "line 4: the truth"},
        Bad{"control_characters", std::string("truth,estimate\n\x01\x1b[31m,0\n"),
            "'\\x01\\x1b[31m' is not a number"},
        Bad{"two_signs", "truth,estimate\n+-0.1,0\n", "is not a number"}),
    [](const auto& row) { return row.param.name; });

TEST(PairsCsv, LinesAreThoseOfTheFile) {
  const Pairs pairs = parse_pairs("t,truth,estimate\n\"a\nb\",0.1,0\n\nc,0.2,0\n", "pairs.csv");
  EXPECT_EQ(pairs.line, (std::vector<std::size_t>{2, 5}));
}

}  // namespace
}  // namespace deeptail
