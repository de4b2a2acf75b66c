# deeptail_stage(<name> SOURCES <files> [USES <earlier stages and libraries>] [KERNELS | READER | GLUE])
# Declares the library of one pipeline stage: deeptail_<name>, built from src/<name>/. KERNELS: arithmetic that reads no
# outside data and brings its own optimisation, so without libFuzzer's coverage and the common headers. READER: parses
# outside data, so the fuzz targets spend their time in it: optimised under the address sanitizer too, which others are not,
# since that doubles the time to compile. GLUE: puts together what other stages compute, and reads and writes text: lightly
# optimised in the release too.
deeptail_headers(stage_headers LINK deeptail_coverage HEADERS ${common_headers})
if(DEEPTAIL_FUZZ)
  deeptail_headers(reader_headers LINK deeptail_coverage OPTIONS -O1 HEADERS ${common_headers})
endif()
function(deeptail_stage name)
  cmake_parse_arguments(ARG "KERNELS;READER;GLUE" "" "SOURCES;USES" ${ARGN})
  add_library(deeptail_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(deeptail_${name} PUBLIC deeptail_flags ${ARG_USES})
  if(ARG_KERNELS)
    return()
  endif()
  target_link_libraries(deeptail_${name} PRIVATE $<BUILD_INTERFACE:deeptail_coverage>)
  if(ARG_GLUE)
    target_compile_options(deeptail_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(ARG_READER AND TARGET reader_headers)
    target_compile_options(deeptail_${name} PRIVATE -O1)
    target_precompile_headers(deeptail_${name} REUSE_FROM reader_headers)
  else()
    target_precompile_headers(deeptail_${name} REUSE_FROM stage_headers)
  endif()
endfunction()
