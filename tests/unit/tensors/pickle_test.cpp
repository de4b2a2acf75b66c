#include "tensors/pickle.h"

#include <gtest/gtest.h>

#include "build_files.h"

namespace deeptail {
namespace {

using namespace testing;
using namespace std::string_literals;

constexpr PickleGlobal kAllowed[] = {
    {"collections.OrderedDict", true}, {"a.b.make", true}, {"a.Type", false}};

Pickle parse(const std::string& program) { return parse_pickle(as_bytes(program), "p", kAllowed); }

TEST(Pickle, Constants) {
  const auto program = "\x80\x04\x95"s + std::string(8, '\0') + "(N\x88\x89J\xff\xff\xff\xffK\xffM\xff\xff"s +
                       "\x8a\x00"s + "\x8a\x01\x80"s + "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"s + "G" +
                       std::string(8, '\0') + pickle_string("str") + "\x8c\x02ok"s + "C\x01z" + "t.";
  const Pickle p = parse(program);
  const PickleValue& root = p[p.root];
  ASSERT_EQ(root.kind, PickleKind::kTuple);
  ASSERT_EQ(root.items.size(), 13u);
  const auto integer = [&](std::size_t i) { return p[root.items[i]].integer; };
  EXPECT_EQ(integer(3), -1);
  EXPECT_EQ(integer(4), 255);
  EXPECT_EQ(integer(5), 65535);
  EXPECT_EQ(integer(6), 0);
  EXPECT_EQ(integer(7), -128);
  EXPECT_EQ(integer(8), INT64_MAX);
  EXPECT_EQ(p[root.items[9]].kind, PickleKind::kFloat);
  EXPECT_EQ(p[root.items[10]].text, "str");
  EXPECT_EQ(p[root.items[11]].text, "ok");
  EXPECT_EQ(p[root.items[12]].kind, PickleKind::kBytes);
}

TEST(Pickle, ContainersAndMemo) {
  // A list in memo 5, filled with 1, 2 and 3, popped, and found again as the value of a dictionary.
  const Pickle p = parse(pickle_program("]q\x05(K\1K\2eK\3a0}(" + pickle_string("k") + "h\x05u"));
  const PickleValue& root = p[p.root];
  ASSERT_EQ(root.kind, PickleKind::kDict);
  ASSERT_EQ(root.items.size(), 2u);
  EXPECT_EQ(p[root.items[1]].items.size(), 3u);
}

TEST(Pickle, CallsStayUninterpreted) {
  const Pickle p = parse(pickle_program("ca.b\nmake\nK\x07\x85R"));
  EXPECT_EQ(p[p.root].kind, PickleKind::kCall);
  EXPECT_EQ(p[p.root].text, "a.b.make");
  EXPECT_EQ(p[p[p[p.root].items[0]].items[0]].integer, 7);
  const Pickle from_stack = parse(pickle_program(pickle_string("a.b") + pickle_string("make") + "\x93)R"));
  EXPECT_EQ(from_stack[from_stack.root].text, "a.b.make");
  const Pickle dict = parse(pickle_program("ccollections\nOrderedDict\n)R}b"));
  EXPECT_EQ(dict[dict.root].kind, PickleKind::kDict);
}

TEST(Pickle, RefusesWhatIsNotAllowed) {
  const auto refused = [](const std::string& body, const std::vector<std::string>& message) {
    expect_refused([&] { parse(pickle_program(body)); }, message);
  };
  refused("cposix\nsystem\n(" + pickle_string("true") + "tR",
          {"p: offset 2", "'posix.system'", "not allowed"});
  refused(pickle_string("os") + pickle_string("system") + "\x93", {"'os.system'"});
  // The name splits only where the whitelist says.
  refused("ca\nb.make\n", {"'a.b.make', which is not allowed"});
  refused("c\na.b.make\n", {"'.a.b.make'"});
  refused("ca.b.make\n\n", {"'a.b.make.'"});
  refused("c" + std::string(1000, 'x') + "\n\x1b[2J\n", {"xxx...", "\\x1b[2J"});
  refused("ca\nType\n)R", {"calls a global 'a.Type'"});
  refused("N)R", {"calls a None"});
  refused("ca.b\nmake\nNR", {"expected a tuple of arguments"});
  refused("ccollections\nOrderedDict\n(NtR", {"with arguments"});
  refused("]}b", {"sets attributes of a list"});
  refused("ca.b\nmake\n)\x81", {"unsupported opcode 0x81"});  // NEWOBJ
  refused("(ia\nType\n", {"unsupported opcode 0x69"});        // INST
  refused("\x8f", {"unsupported opcode 0x8f"});               // EMPTY_SET
}

TEST(Pickle, RefusesBrokenPrograms) {
  const auto refused = [](const std::string& program, const std::vector<std::string>& message) {
    expect_refused([&] { parse(program); }, message);
  };
  refused("", {"no STOP yet"});
  refused("\x80\x06N.", {"protocol 6, expected 2 to 5"});
  refused("\x80\x01N.", {"protocol 1, expected 2 to 5"});
  refused("N", {"offset 1", "no STOP yet"});
  refused(".", {"expected one value at the end, found 0"});
  refused("NN.", {"found 2"});
  refused("0.", {"the stack is empty"});
  refused("N(0.", {"the stack is empty"});
  refused("t.", {"no mark"});
  refused("N\x86.", {"expected 2 values on the stack, found 1"});
  refused("Na.", {"the stack is empty"});
  refused("NNa.", {"expected a list to fill, found a None"});
  refused("](NNu.", {"expected a dictionary to fill, found a list"});
  refused("}(Nu.", {"a dictionary key without a value"});
  refused("h\x07.", {"memo entry 7 is used before it is set"});
  refused("X\xff\xff\xff\xff.", {"truncated", "4294967295"});
  refused("\x8d" + std::string(8, '\xff') + ".", {"truncated", "18446744073709551615"});
  refused("cos", {"no end of line"});
  refused("\x8a\x09" + std::string(9, '\x01') + ".", {"an integer of 9 bytes"});
  refused("NN\x93.", {"names of a module"});
}

TEST(Pickle, LimitsTheNumberOfValues) {
  expect_refused([] { parse(pickle_program("(" + std::string(1'000'001, ']') + "t")); },
                 {"more than 1000000 values"});
  expect_refused([] { parse(pickle_program("N" + std::string(1'000'001, '\x94'))); },
                 {"more than 1000000 memo entries"});
}

// Repeated references cost a number each, not a copy: 2^40 items if they were copied.
TEST(Pickle, SharedContainersAreNotCopied) {
  std::string doubling = "N";
  for (int i = 0; i < 40; ++i) doubling += "2\x86";
  EXPECT_EQ(parse(pickle_program(doubling)).values.size(), 41u);
  std::string calls = "(";
  calls += "(" + std::string(10000, 'N') + "tq\x01";
  for (int i = 0; i < 10000; ++i) calls += "ca.b\nmake\nh\x01R";
  EXPECT_EQ(parse(pickle_program(calls + "t")).values.size(), 10000u + 1 + 20000u + 1);
}

}  // namespace
}  // namespace deeptail
