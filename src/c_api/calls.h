// What dt_call knows: functions from JSON to JSON, by name.
#pragma once

#include "c_api/caller.h"
#include "core/json_node.h"

namespace deeptail::c_api {

// watch: the caller's; a function that was stopped gives what it has.
using CallFunction = OrderedJson (*)(const JsonNode& arguments, const Watch& watch);

OrderedJson list_things(const JsonNode& arguments, const Watch& watch);
OrderedJson spb_alpha(const JsonNode& arguments, const Watch& watch);
OrderedJson spb_epsilon(const JsonNode& arguments, const Watch& watch);
OrderedJson fetch_model(const JsonNode& arguments, const Watch& watch);
OrderedJson calibrate_pairs(const JsonNode& arguments, const Watch& watch);
OrderedJson noise_floor_of(const JsonNode& arguments, const Watch& watch);
OrderedJson bootstrap_pairs(const JsonNode& arguments, const Watch& watch);
OrderedJson count_truth_file(const JsonNode& arguments, const Watch& watch);
OrderedJson read_truth_file(const JsonNode& arguments, const Watch& watch);
OrderedJson compare_truth_files(const JsonNode& arguments, const Watch& watch);
OrderedJson merge_truth_files(const JsonNode& arguments, const Watch& watch);
OrderedJson run_bench(const JsonNode& arguments, const Watch& watch);
OrderedJson read_run_folder(const JsonNode& arguments, const Watch& watch);
OrderedJson write_report(const JsonNode& arguments, const Watch& watch);
OrderedJson pattern_automaton(const JsonNode& arguments, const Watch& watch);
OrderedJson run_selftest(const JsonNode& arguments, const Watch& watch);

// Of the arguments, or what stands for them where they are not given.
std::string text_or(const JsonNode& node, const char* key, std::string otherwise);
double number_or(const JsonNode& node, const char* key, double otherwise);
std::uint64_t count_or(const JsonNode& node, const char* key, std::uint64_t otherwise);
std::vector<std::string> texts_or_none(const JsonNode& node, const char* key);
std::size_t threads_of(const JsonNode& node);  // "threads", 0 where there are none
// Refuses keys that are none of these.
void expect_keys(const JsonNode& node, std::initializer_list<std::string_view> keys);
OrderedJson json_of(double value);  // infinity as a string

}  // namespace deeptail::c_api
