# deeptail_stage(<name> SOURCES <files> [USES <earlier stages and libraries>])
# Declares the library of one pipeline stage: deeptail_<name>, built from src/<name>/.
function(deeptail_stage name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_library(deeptail_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(deeptail_${name} PUBLIC deeptail_flags ${ARG_USES})
endfunction()
