// Teacher forcing against all ways to write a text in tokens, one by one.
#include <gtest/gtest.h>

#include <cmath>

#include "deeptail/forecast.h"
#include "sizes.h"
#include "unit/inputs/zoo.h"

namespace deeptail {
namespace {

const LoadedModel& asked_model() {
  static const LoadedModel model = load_model(std::string(DEEPTAIL_SOURCE) + "/models/dt-1l");
  return model;
}

// The chance that what follows the tokens begins with `text`: over all tokens that it may begin with, each asked
// for what is left of it.
double chance_by_all(std::vector<TokenId> tokens, std::string_view text, const SamplingConfig& sampling,
                     ThreadPool& pool) {
  const auto& tokenizer = asked_model().tokenizer->tokenizer;
  const std::size_t d = asked_model().config().d_model, v = asked_model().config().d_vocab;
  std::vector<float> resid(d), logit(v);
  final_residuals(asked_model().transformer, {tokens, tokens.size()}, pool, {resid.data(), d});
  logits(asked_model().head(), 1, {resid.data(), d}, pool, {logit.data(), v});
  NextTokenLaw law(sampling, v);
  law.set(logit);
  double sum = 0.0;
  for (std::size_t id = 4; id < v; ++id) {  // the first are special
    const auto token = static_cast<TokenId>(id);
    const std::string bytes = tokenizer.bytes_of(token);
    if (bytes.empty() || !(law.p(token) > 0.0)) continue;
    if (bytes.size() >= text.size() ? bytes.starts_with(text) : false) {
      sum += law.p(token);
    } else if (text.starts_with(bytes)) {
      std::vector<TokenId> longer = tokens;
      longer.push_back(token);
      sum += law.p(token) * chance_by_all(longer, text.substr(bytes.size()), sampling, pool);
    }
  }
  return sum;
}

TEST(Elicitation, IsTheSumOverAllTokensUpToWhatItSaysIsLeftOut) {
  ThreadPool pool(2);
  const TokenTables law(zoo("english"));
  const Inputs prompts = sample_inputs(law, 5, 0, sized<std::size_t>(6, 1), pool);
  for (const SamplingConfig& sampling :
       {SamplingConfig{}, SamplingConfig{.temperature = 0.7, .top_k = 500}}) {
    for (const char* text : {" the", " world", "s", " wizard."}) {
      Elicitation asked(asked_model(), text, sampling, law.facts().max_length, pool);
      std::vector<double> log_p(prompts.size());
      asked.log_chances(prompts, log_p);
      double found = 0.0, all = 0.0;
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        const auto prompt = prompts.sequence(i);
        const double truth = chance_by_all({prompt.begin(), prompt.end()}, text, sampling, pool);
        EXPECT_LE(std::exp(log_p[i]), truth * (1.0 + 1e-5));
        found += std::exp(log_p[i]);
        all += truth;
      }
      EXPECT_GE(found * (1.0 + asked.left_out()), all * (1.0 - 1e-5)) << text;
      if (prompts.size() > 1) {
        EXPECT_GT(found, 0.6 * all) << text;
      }
    }
  }
}

TEST(Elicitation, IsTheSameForAnyThreads) {
  std::vector<double> first;
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    const TokenTables law(zoo("hex"));
    Elicitation asked(asked_model(), "abc", {.temperature = 0.8}, law.facts().max_length, pool);
    std::vector<double> log_p(300);
    asked.log_chances(sample_inputs(law, 1, 0, 300, pool), log_p);
    if (first.empty()) first = log_p;
    EXPECT_EQ(log_p, first);
  }
}

TEST(Elicitation, WhatHasNoRoomIsRefused) {
  ThreadPool pool(1);
  EXPECT_THROW(Elicitation(asked_model(), " the", {}, 64, pool), InputError);
  EXPECT_THROW(Elicitation(asked_model(), "", {}, 10, pool), InputError);
}

}  // namespace
}  // namespace deeptail
