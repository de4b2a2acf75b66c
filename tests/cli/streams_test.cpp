// Standard streams and places that cannot be written.
#include <sys/stat.h>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class Streams : public CliTest {
 protected:
  std::string estimate(const std::string& rest) const {
    return "estimate --model dt-1l --dist caps --target 5 --method mc --budget 64 " + rest;
  }
};

TEST_F(Streams, ErrorsThatNobodyCanReadDoNotAbort) {
  const Outcome done = run(estimate("2>/dev/full"));
  EXPECT_EQ(done.code, 0);
  EXPECT_NE(done.out.find("Pr["), std::string::npos);
  EXPECT_EQ(run(estimate("--device none 2>/dev/full")).code, 2);
  EXPECT_EQ(run("estimate --nonsense 2>/dev/full").code, 2);
  EXPECT_EQ(
      run("truth --model dt-1l --dist caps --samples 64 --out '" + path("t.json") + "' 2>/dev/full").code, 0);
}

}  // namespace
}  // namespace deeptail
