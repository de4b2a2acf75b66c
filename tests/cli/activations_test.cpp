// deeptail activations capture and the methods on activations, run as a user runs them.
#include <cmath>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

class ActivationsCommand : public CliTest {
 protected:
  std::string a() const { return path("a.npy"); }
  std::string w() const { return path("w.safetensors"); }
  void capture() const {
    const Outcome outcome = run("activations capture --model dt-1l --dist hex --count 2000 --quiet --out " +
                                a() + " --unembed-out " + w());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
  std::string from_files(const std::string& rest) const {
    return "estimate --activations " + a() + " --unembed " + w() + " " + rest;
  }
};

TEST_F(ActivationsCommand, WhatIsCapturedGivesWhatTheModelGives) {
  capture();
  for (const std::string method : {"qld", "gld", "qld-arc", "ga-amls --particles 50 --moves 6"}) {
    const auto files = json(from_files("--target 69 --method " + method));
    const auto model =
        json("estimate --model dt-1l --dist hex --calibration 2000 --target 69 --method " + method);
    EXPECT_EQ(files.at("p"), model.at("p")) << method;
    EXPECT_EQ(files.at("guarantee"), "model_based");
    EXPECT_EQ(files.at("model"), "w.safetensors");
    EXPECT_EQ(files.at("dist"), "a.npy");
    EXPECT_EQ(files.at("cost").at("forward"), 0);
    EXPECT_EQ(model.at("cost").at("forward"), 2000);
  }
  EXPECT_GT(json(from_files("--target 69 --method qld")).at("diagnostics").at("ridge").get<double>(), 0.0);
  EXPECT_LT(json(from_files("--target 69 --method qld")).at("diagnostics").at("kkt_residual").get<double>(),
            1e-9);
}

TEST_F(ActivationsCommand, GaAmlsKeepsItsLevels) {
  capture();
  const auto e =
      json(from_files("--target 1266 --method ga-amls --particles 60 --moves 8 --replicas 2 --seed 3"));
  EXPECT_GE(e.at("levels").size(), 3u);
  EXPECT_GT(e.at("levels").at(0).at("step_size").get<double>(), 0.0);
  EXPECT_GT(e.at("cost").at("score_evals").get<double>(), 1000.0);
  EXPECT_TRUE(e.at("diagnostics").contains("mahalanobis_q50"));
}

TEST_F(ActivationsCommand, StepSizeIsWhereTheFirstLevelStarts) {
  capture();
  const std::string question = "--target 1266 --method ga-amls --particles 60 --moves 2 --seed 3";
  const auto usual = json(from_files(question)), far = json(from_files(question + " --step-size 0.5"));
  EXPECT_EQ(usual.at("settings").at("step_size"), 0.001);
  EXPECT_EQ(far.at("settings").at("step_size"), 0.5);
  const auto first_step = [](const auto& e) {
    return e.at("levels").at(0).at("step_size").template get<double>();
  };
  EXPECT_LT(first_step(usual), 0.01);
  EXPECT_GT(first_step(far), 0.1);
}

TEST_F(ActivationsCommand, SetsOfTokensThatAMethodDoesNotTake) {
  capture();
  refused(from_files("--target 69,70 --method qld-arc"), "qld-arc takes one target token, found 2");
}

TEST_F(ActivationsCommand, BadInput) {
  capture();
  refused(from_files("--target 69 --method ga-amls --prior conditioned --particles 10 --moves 2"),
          "carry no tokens");
  refused(from_files("--target 69 --method ga-amls --prior cauchy"), "--prior: expected student_t");
  refused(from_files("--target 69 --method ga-amls --kernel hmc"), "--kernel: expected rwmh");
  refused(from_files("--target 69 --method ga-amls --start here"), "--start: expected calibration or prior");
  refused(from_files("--target 69 --method mc"),
          "mc runs the model on its inputs: activations alone are not enough; expected --model and --dist");
  refused(from_files("--target 69 --method qld --model dt-1l"), "expected one of the two pairs");
  refused(from_files("--target 5000 --method qld"), "5000");
  refused("estimate --activations " + a() + " --target 69 --method qld",
          "expected both, found only --activations");
  refused("estimate --target 69 --method qld", "expected --model and --dist, or --activations and --unembed");
  refused("estimate --activations " + w() + " --unembed " + w() + " --target 69 --method qld",
          "expected one tensor");
  refused("activations capture --model dt-1l --dist hex --count 0 --out " + path("b.npy"), "--count");
  refused("activations capture --model dt-1l --dist hex --count 10 --quiet --out " + path("no/b.npy"),
          "no/b.npy");
}

}  // namespace
}  // namespace deeptail
