// Numbers that make no sense: one sentence, exit code 2, nothing allocated, nothing written.
#include "cli/run_binary.h"

namespace deeptail {
namespace {

struct BadFlag {
  const char* flags;
  const char* part;  // of the sentence
};

class BadNumbers : public CliTest {
 protected:
  void all_refused(const std::string& command, std::initializer_list<BadFlag> table) const {
    for (const auto& [flags, part] : table) refused(command + " " + flags, part);
  }
};

TEST_F(BadNumbers, JudgesProbesAndEvents) {
  all_refused("estimate --model dt-1l --dist hex --judge cat",
              {{"--within 3", "--judge: expected --threshold"},
               {"--threshold 1", "--judge: expected --within"},
               {"--within 3 --threshold nan", "--threshold: expected a finite number, found \"nan\""},
               {"--within 3 --threshold x", "--threshold"},
               {"--within 0 --threshold 1", "--within"},
               {"--within 3 --threshold 1 --judge-timeout 0", "--judge-timeout: expected seconds"},
               {"--within 3 --threshold 1 --judge-timeout -1", "--judge-timeout: expected seconds"},
               {"--within 3 --threshold 1 --judge-timeout nan", "--judge-timeout"}});
  refused("estimate --model dt-1l --dist hex --probe p.json", "--probe: expected --threshold");
  refused("estimate --model dt-1l --dist hex --probe nowhere.json --threshold 1", "nowhere.json");
  const std::string out = " --out '" + path("e.json") + "'";
  all_refused("truth --model dt-1l --dist hex --contains a" + out,
              {{"--samples 10", "--contains: expected --within"},
               {"--samples 0 --within 3", "--samples"},
               {"--samples 10 --within 0", "--within"},
               {"--samples 10 --within 3 --temperature 0", "--temperature"},
               {"--samples 10 --within 3 --top-p 2", "--top-p"},
               {"--samples 10 --within 3 --top-k -1", "--top-k"},
               {"--samples 10 --within 3 --device cuda", "events are counted on the CPU"},
               {"--samples 10 --within 100", "the model's n_ctx"}});
  refused("truth --model dt-1l --dist hex --samples 10 --events '" + write("bad.jsonl", "{\"says\": 1}\n") +
              "'" + out,
          "bad.jsonl: line 1");
}

TEST_F(BadNumbers, Estimate) {
  all_refused(
      "estimate --model dt-1l --dist hex --target 49",
      {{"--particles 100000000000", "100000000000 particles: expected 2 to 16777215"},
       {"--particles 16777215 --threads 16", "GiB of memory: expected at most half"},
       {"--particles 1", "1 particles: expected 2"},
       {"--particles 0", "--particles: expected a whole number from 1"},
       {"--particles -1", "--particles: expected a whole number"},
       {"--replicas 100000000", "100000000 replicas: expected"},
       {"--replicas 0", "--replicas: expected a whole number from 1"},
       {"--replicas 1", "1 replicas: expected at least 2"},
       {"--replicas -1", "--replicas: expected a whole number"},
       {"--threads 100000", "100000 threads: expected at most 1024"},
       {"--budget 1", "budget 1: tokensplit needs at least 1000"},
       {"--budget 1e300", "--budget: expected a whole number from 1 to 2^62"},
       {"--budget nan", "--budget"},
       {"--budget -5", "--budget"},
       {"--moves 0", "--moves: expected a whole number from 1"},
       {"--moves 100000000000", "100000000000 moves: expected 1 to"},
       {"--moves 99999999999999999999", "--moves: expected a whole number"},
       {"--calibration 2^62", "count 4611686018427387904: expected at most 2^40"},
       {"--calibration 0", "--calibration"},
       {"--rel-error nan", "--rel-error: expected a number above 0, found \"nan\""},
       {"--rel-error -1", "--rel-error: expected a number above 0, found \"-1\""},
       {"--rel-error inf", "--rel-error"},
       {"--rel-error 0", "--rel-error: expected a number above 0"},
       {"--survive-fraction 0", "--survive-fraction: expected a number above 0 and below 1, found \"0\""},
       {"--survive-fraction 1", "--survive-fraction: expected"},
       {"--survive-fraction nan", "--survive-fraction"},
       {"--survive-fraction -0.2", "found \"-0.2\""},
       {"--taper 0.5", "--taper: expected a number from 1, found \"0.5\""},
       {"--taper nan", "--taper"},
       {"--taper 1e300", "taper 1e+300"},
       {"--forgotten 0", "--forgotten: expected a number above 0 and below 1"},
       {"--forgotten 1", "--forgotten: expected a number above 0 and below 1"},
       {"--forgotten nan", "--forgotten"},
       {"--first-draw 100000000000", "first draw of 100000000000: expected at most"},
       {"--first-draw 1073741824 --threads 16", "GiB of memory"},
       {"--seed -1", "--seed: expected a whole number"},
       {"--seed 1.5", "found \"1.5\""},
       {"--kernel foo", "--kernel: expected rwmh, mala, mapla or pcn, found \"foo\""},
       {"--prior foo", "--prior: expected student_t,"},
       {"--start foo", "--start: expected calibration or prior"},
       {"--device foo", "--device: expected cpu or cuda, found \"foo\""},
       {"--tail-every -1", "--tail-every: expected a whole number"},
       {"--tail-every few", "found \"few\""},
       {"--step-size 0", "--step-size: expected a number above 0"},
       {"--step-size nan", "--step-size: expected a number above 0"},
       {"--step-size small", "found \"small\""},
       {"--temperature -1", "--temperature: expected a number above 0"},
       {"--chains 0", "--chains: expected a whole number from 1"},
       {"--burn-in -1", "--burn-in: expected a whole number"},
       {"--normaliser mean", "--normaliser: expected harmonic or bridge, found \"mean\""},
       {"--method mc --taper 0.5", "--taper: expected a number from 1"},
       {"--method mc --particles 1", "1 particles: expected 2"},
       {"--method mc --budget 2^63", "--budget"}});
}

TEST_F(BadNumbers, EstimatesOfAllTokens) {
  all_refused(
      "estimate --model dt-1l --dist hex --all",
      {{"--above 0", "--above: expected a number above 0 and below 1, found \"0\""},
       {"--above 2", "--above: expected a number above 0 and below 1"},
       {"--above -1e-8", "--above: expected a number above 0 and below 1"},
       {"--above nan", "--above: expected a number above 0 and below 1, found \"nan\""},
       {"--above x", "--above"},
       {"--below 0", "below 0: expected a probability above 1e-08"},
       {"--below 1e-9", "below 1e-09: expected a probability above 1e-08"},
       {"--below 1.5", "--below: expected a number from 0 to 1"},
       {"--below nan", "--below: expected a number from 0 to 1"},
       {"--budget 5000", "budget 5000: expected at least 1e4"},
       {"--budget 2^62", "budget 4.61"},
       {"--threads 100000", "100000 threads: expected at most 1024"},
       {"--seed -1", "--seed: expected a whole number"},
       {"--target 3", "--all and --target: expected one of them"},
       {"--method mc", "--all and --method mc"},
       {"--replicas 4", "--replicas and --all: expected none but --budget, --above, --below and --device"},
       {"--contains a --within 3", "--all is about the most likely next token"},
       {"--activations a.npy", "--all is about the most likely next token"}});
  refused("estimate --model dt-1l --all", "expected --model and --dist");
  refused("estimate --model dt-1l --dist hex --target 3 --above 1e-6", "--above: goes with --all");
  refused("estimate --model dt-1l --dist hex --target 3 --out '" + path("a.json") + "'",
          "--out: goes with --all");
}

TEST_F(BadNumbers, EstimatesOfContinuations) {
  all_refused("estimate --model dt-1l --prompt x --contains y",
              {{"", "--contains: expected --within"},
               {"--within 0", "--within: expected a whole number from 1"},
               {"--within -1", "--within: expected a whole number"},
               {"--within 1e30", "--within"},
               {"--within 2000000", "--within: expected a whole number from 1 to 1048576, found \"2000000\""},
               {"--within 4 --temperature 0", "--temperature: expected a number above 0"},
               {"--within 4 --temperature nan", "--temperature: expected a number above 0"},
               {"--within 4 --top-k 0", "--top-k: expected a whole number from 1"},
               {"--within 4 --top-p 0", "--top-p: expected a number above 0 and at most 1, found \"0\""},
               {"--within 4 --top-p 1.5", "--top-p: expected a number above 0 and at most 1"},
               {"--within 4 --top-p nan", "--top-p"},
               {"--within 4 --method payoff --budget 1", "budget 1: payoff needs at least 100 texts"},
               {"--within 4 --method payoff --branches 0", "--branches: expected a whole number from 1"},
               {"--within 4 --method payoff --branches 5000", "5000 branches: expected at most 4096"},
               {"--within 4 --method payoff --levels some", "--levels: expected auto, none or always"},
               {"--within 4 --matches z", "expected one event, found --contains, --matches"},
               {"--within 4 --target 3", "--target and --contains: expected one event"},
               {"--within 4 --dist hex", "expected one of --dist, --prompt and --prompts, found more"},
               {"--within 4 --stop eos", "name no token that ends a text"},
               {"--within 4 --stop 'two words'", "is not one token of dt-1l"},
               {"--within 4 --method qld", "qld"}});
}

TEST_F(BadNumbers, Generate) {
  all_refused("model generate --model dt-1l --prompt a --stop none",
              {{"--count 0", "--count"},
               {"--count -1", "--count"},
               {"--count 2^41", "--count 2199023255552: expected at most 2^40 texts"},
               {"--within 0", "--within"},
               {"--within 1e12", "1000000000000 new tokens: dt-1l takes at most"},
               {"--temperature 0", "--temperature: expected a number above 0"},
               {"--temperature 1e-9", "temperature 1e-09: expected 1e-06 to"},
               {"--temperature nan", "--temperature"},
               {"--top-k 0", "--top-k"},
               {"--top-k 1e300", "--top-k"},
               {"--top-p 0", "--top-p: expected a number above 0 and at most 1"},
               {"--top-p 1.5", "--top-p"},
               {"--top-p nan", "--top-p"},
               {"--seed -1", "--seed: expected a whole number"},
               {"--threads 100000", "100000 threads: expected at most 1024"}});
}

TEST_F(BadNumbers, EstimatesFromActivations) {
  all_refused("estimate --model dt-1l --dist hex --target 49 --method ga-amls",
              {{"--particles 100000000000", "100000000000 particles: expected 2 to"},
               {"--particles 1", "1 particles: expected 2"},
               {"--moves 4194304", "4194304 moves: expected 1 to 4194303"},
               {"--replicas 100000000", "100000000 replicas: expected 1 to"},
               {"--calibration 2^40", "GiB of memory"},
               {"--calibration 20 --quiet", "20 activations of dimension 128: expected more rows"}});
  refused("estimate --activations a.npy --target 49 --method qld", "expected both, found only --activations");
  refused("estimate --model dt-1l --dist hex --target 49 --method qld --calibration 2^40", "GiB of memory");
}

TEST_F(BadNumbers, OtherCommands) {
  const std::string capture = "activations capture --model dt-1l --dist hex --out '";
  all_refused(capture + path("a.npy") + "'", {{"--count 2^40", "GiB of memory"},
                                              {"--count 2^41", "expected at most 2^40"},
                                              {"--count -1", "--count"},
                                              {"--seed x", "--seed"}});
  refused(capture + path("none/a.npy") + "' --count 2^20", "none/a.npy: cannot create");
  refused(capture + path("") + "' --count 2^20", "it is a folder");
  all_refused("truth --model dt-1l --dist hex --out '" + path("t.json") + "'",
              {{"--samples 0", "--samples: expected a whole number from 1 to 2^62"},
               {"--samples 2^64", "--samples"},
               {"--samples 18446744073709551616", "--samples"},
               {"--samples 10 --first 18446744073709551615", "all below number 2^62"},
               {"--samples 10 --keep-hits 0", "--keep-hits: expected a whole number from 1 to 2^62"},
               {"--samples 10 --keep-hits 2^40", "GiB of memory"},
               {"--samples 10 --seconds nan", "--seconds"},
               {"--samples 10 --seconds 0", "--seconds 0: expected a positive number"}});
  all_refused("dist sample hex",
              {{"--count 0", "--count"}, {"--first 4611686018427387904", "below number 2^62"}});
  all_refused("loss '" + write("p.csv", "truth,estimate\n1e-3,1e-4\n") + "'",
              {{"--alpha nan", "--alpha: expected a finite number"},
               {"--gamma inf", "--gamma"},
               {"--resamples 100000000000", "resamples: a bootstrap"}});
  refused("spb table --alpha 2 --m 2,nan", "--m: expected a finite number");
  for (const auto& file : std::filesystem::directory_iterator(folder_))
    EXPECT_TRUE(file.path().filename() == "stderr" || file.path().filename() == "p.csv") << file.path();
}

TEST_F(BadNumbers, FlagsWithoutEffectAreTold) {
  const auto e = json("estimate --model dt-1l --dist hex --target 69 --method mc --budget 64 --taper 2");
  ASSERT_GE(e.at("warnings").size(), 1u);
  EXPECT_EQ(e.at("warnings").back(), "--taper has no effect on mc");
}

TEST_F(BadNumbers, FlagsOfAnotherQuestionAreTold) {
  const std::string next = "--model dt-1l --dist hex ",
                    text = "estimate --model dt-story --prompt A --budget 200 --threshold 2 ";
  const auto warned = [&](const std::string& command) { return json(command).at("warnings").back(); };
  EXPECT_EQ(warned("estimate " + next + "--target 69 --method mc --budget 64 --top-k 3"),
            "--top-k has no effect on the most likely next token");
  EXPECT_EQ(warned(text + "--contains a --within 3"), "--threshold has no effect on --contains");
  EXPECT_EQ(warned(text + "--target 69 --sampled"), "--threshold has no effect on --target with --sampled");
  refused("estimate " + next + "--all --within 3", "--within has no effect on the most likely next token");
  refused("truth " + next + "--samples 64 --out '" + path("t.json") + "' --temperature 0.5",
          "--temperature has no effect on the most likely next token, which is what is counted");
}

}  // namespace
}  // namespace deeptail
