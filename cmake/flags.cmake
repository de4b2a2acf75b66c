# Compiler settings of every deeptail target, as one interface library.
add_library(deeptail_flags INTERFACE)
target_include_directories(deeptail_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)

# No fast-math, and no contraction of a*b+c behind our back: a fused multiply-add happens only where the
# code asks for one, so every CPU with FMA gives the same bits.
target_compile_options(deeptail_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -ffp-contract=off
  $<$<BOOL:${DEEPTAIL_WERROR}>:-Werror>)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A tenth of GCC's time goes into collecting garbage of which there is less than this (KiB).
  target_compile_options(deeptail_flags INTERFACE --param=ggc-min-heapsize=524288)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In a joined file, GCC takes the sources for headers, where anonymous namespaces would be suspect.
  target_compile_options(deeptail_flags INTERFACE -Wno-subobject-linkage)
endif()
# The undefined-behaviour checks look at our code. Those of the standard library's templates and of other headers would be
# most of all checks and a fifth of the time to compile; the address sanitizer sees what goes wrong there.
if(DEEPTAIL_SANITIZE MATCHES undefined)
  set(unchecked -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/unchecked.txt)
endif()
if(DEEPTAIL_SANITIZE)
  target_compile_options(deeptail_flags INTERFACE
    -fsanitize=${DEEPTAIL_SANITIZE} ${unchecked} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(deeptail_flags INTERFACE -fsanitize=${DEEPTAIL_SANITIZE})
  find_program(DEEPTAIL_LLD ld.lld)  # takes a fraction of the usual linker's time for the sanitizers' large programs
  if(DEEPTAIL_LLD)
    target_link_options(deeptail_flags INTERFACE -fuse-ld=lld)
  endif()
  target_compile_definitions(deeptail_flags INTERFACE DEEPTAIL_SANITIZED)
endif()
# What libFuzzer looks at to find its way; only the stages that read outside data need it.
add_library(deeptail_coverage INTERFACE)
if(DEEPTAIL_FUZZ)
  target_compile_options(deeptail_coverage INTERFACE -fsanitize=fuzzer-no-link)
endif()
