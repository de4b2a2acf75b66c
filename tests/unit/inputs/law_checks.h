// What every law must keep.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "deeptail/law.h"

namespace deeptail {

// Redrawing says what changed, and gives what making the input from all its parts gives.
inline void expect_redraws_as_made(const InputLaw& law, std::size_t n = 500) {
  ThreadPool pool(2);
  const std::size_t n_parts = law.facts().n_parts;
  std::vector<std::uint64_t> parts(n * n_parts), other(n * n_parts);
  sample_parts(law, 4, 0, pool, parts);
  sample_parts(law, 5, 0, pool, other);
  Inputs inputs, made;
  law.make(parts, inputs, pool);
  const Inputs before = inputs;
  std::vector<Redraw> redraws;
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t k = 0; k < i % 3; ++k) {
      const auto part = static_cast<std::uint32_t>((i * 7 + k * 5) % n_parts);
      redraws.push_back({i, part, other[i * n_parts + part]});
    }
  std::vector<std::uint32_t> first(n);
  law.redraw(redraws, parts, inputs, first, pool);
  law.make(parts, made, pool);
  EXPECT_EQ(inputs.tokens, made.tokens);
  EXPECT_EQ(inputs.lengths, made.lengths);
  for (std::size_t i = 0; i < n; ++i) {
    const auto was = before.sequence(i), is = made.sequence(i);
    const auto [a, b] = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
    if (a == was.end() && b == is.end())
      EXPECT_EQ(first[i], kUnchanged);
    else
      EXPECT_EQ(first[i], a - was.begin());
  }
}

// The same inputs for any number of threads, within the law's lengths and vocabulary; a part leaves alone what lies
// before its first position, and all of an input where it is not free; all begin with the constant prefix.
inline void expect_a_law(const InputLaw& law, std::size_t n = 300) {
  const LawFacts& facts = law.facts();
  ThreadPool pool(2);
  const Inputs some = sample_inputs(law, 3, 100, n, pool);
  for (const std::size_t threads : {1, 7}) {
    ThreadPool other(threads);
    EXPECT_EQ(sample_inputs(law, 3, 100, n, other).tokens, some.tokens);
  }
  EXPECT_EQ(some.max_length, facts.max_length);
  const std::vector<TokenId> prefix = constant_prefix(law, pool);
  const std::vector<std::size_t> free = law.free_parts();
  std::vector<std::uint64_t> parts(n * facts.n_parts), other(n * facts.n_parts);
  sample_parts(law, 3, 100, pool, parts);
  sample_parts(law, 8, 0, pool, other);
  for (std::size_t i = 0; i < n; ++i) parts[i * facts.n_parts + i % facts.n_parts] = other[i];
  Inputs redrawn;
  law.make(parts, redrawn, pool);
  for (std::size_t i = 0; i < n; ++i) {
    const auto was = some.sequence(i), is = redrawn.sequence(i);
    ASSERT_GE(was.size(), 1u);
    ASSERT_LE(was.size(), facts.max_length);
    for (const TokenId id : was) ASSERT_TRUE(id >= 0 && static_cast<std::size_t>(id) < facts.d_vocab);
    ASSERT_TRUE(std::all_of(some.batch().row(i) + was.size(), some.batch().row(i) + facts.max_length,
                            [](TokenId id) { return id == 0; }));
    ASSERT_TRUE(was.size() > prefix.size() && std::equal(prefix.begin(), prefix.end(), was.begin()));
    const std::size_t part = i % facts.n_parts;
    const auto [a, b] = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
    if (a == was.end() && b == is.end()) continue;
    EXPECT_GE(static_cast<std::size_t>(a - was.begin()), law.first_position(part)) << "part " << part;
    EXPECT_TRUE(std::find(free.begin(), free.end(), part) != free.end()) << "part " << part;
  }
  expect_redraws_as_made(law, n);
}

}  // namespace deeptail
