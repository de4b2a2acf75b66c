# deeptail_stage(<name> SOURCES <files> [USES <earlier stages and libraries>] [KERNELS])
# Declares the library of one pipeline stage: deeptail_<name>, built from src/<name>/. KERNELS: arithmetic that reads no
# outside data and brings its own optimisation, so without libFuzzer's coverage and the common headers.
deeptail_headers(stage_headers LINK deeptail_coverage HEADERS ${common_headers})
function(deeptail_stage name)
  cmake_parse_arguments(ARG "KERNELS" "" "SOURCES;USES" ${ARGN})
  add_library(deeptail_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(deeptail_${name} PUBLIC deeptail_flags ${ARG_USES})
  if(NOT ARG_KERNELS)
    target_link_libraries(deeptail_${name} PRIVATE $<BUILD_INTERFACE:deeptail_coverage>)
    target_precompile_headers(deeptail_${name} REUSE_FROM stage_headers)
  endif()
endfunction()
