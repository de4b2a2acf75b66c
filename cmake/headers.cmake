# The headers that nearly every file includes, compiled once for the stages and once for the tests (which are not
# optimised). The preset `debug` does without, so that every file is seen to include what it uses.
set(common_headers <algorithm> <cmath> <filesystem> <fstream> <functional> <map> <memory> <set> <span> <string>
  <string_view> <vector> <fmt/format.h> <nlohmann/json.hpp>)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/nothing.cpp CONTENT "")

# deeptail_headers(<name> LINK <libraries> OPTIONS <compiler options> HEADERS <headers>): for REUSE_FROM.
function(deeptail_headers name)
  cmake_parse_arguments(ARG "" "" "LINK;OPTIONS;HEADERS" ${ARGN})
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/nothing.cpp)
  target_link_libraries(${name} PRIVATE deeptail_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads ${ARG_LINK})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()
