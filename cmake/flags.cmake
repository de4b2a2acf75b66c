# Compiler settings of every deeptail target, as one interface library.
add_library(deeptail_flags INTERFACE)
target_include_directories(deeptail_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)

# No fast-math, and no contraction of a*b+c behind our back: a fused multiply-add happens only where the
# code asks for one, so every CPU with FMA gives the same bits.
target_compile_options(deeptail_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -ffp-contract=off
  $<$<BOOL:${DEEPTAIL_WERROR}>:-Werror>)

if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In a joined file, GCC takes the sources for headers, where anonymous namespaces would be suspect.
  target_compile_options(deeptail_flags INTERFACE -Wno-subobject-linkage)
endif()
# Without the checks for null and wrong dynamic types: the first is a crash that the address sanitizer reports as well,
# and both together are a fifth of the time to compile.
if(DEEPTAIL_SANITIZE MATCHES undefined)
  set(unchecked -fno-sanitize=null,vptr)
endif()
if(DEEPTAIL_SANITIZE)
  target_compile_options(deeptail_flags INTERFACE
    -fsanitize=${DEEPTAIL_SANITIZE} ${unchecked} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(deeptail_flags INTERFACE -fsanitize=${DEEPTAIL_SANITIZE})
  target_compile_definitions(deeptail_flags INTERFACE DEEPTAIL_SANITIZED)
endif()
# What libFuzzer looks at to find its way; only the stages that read outside data need it.
add_library(deeptail_coverage INTERFACE)
if(DEEPTAIL_FUZZ)
  target_compile_options(deeptail_coverage INTERFACE -fsanitize=fuzzer-no-link)
endif()
