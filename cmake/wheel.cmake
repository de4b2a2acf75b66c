# DEEPTAIL_WHEEL: a libdeeptail.so that runs on systems other than the one it was built on. What Debian has as archives is
# linked statically, fmt and toml++ are used as headers, libcurl is opened when it is needed, and libhwy, of which there is no
# archive, lies beside it.
function(deeptail_use_archive target name)
  find_library(${name}_archive lib${name}.a REQUIRED)
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES ${${name}_archive})
endfunction()
deeptail_use_archive(PkgConfig::PCRE2 pcre2-8)
deeptail_use_archive(PkgConfig::UTF8PROC utf8proc)
set_target_properties(PkgConfig::CURL PROPERTIES INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
set_target_properties(PkgConfig::TOMLPP PROPERTIES INTERFACE_LINK_LIBRARIES "" INTERFACE_COMPILE_OPTIONS -DTOML_HEADER_ONLY=1
  INTERFACE_COMPILE_DEFINITIONS "")
target_compile_definitions(deeptail_flags INTERFACE FMT_HEADER_ONLY)
# The library that libhwy.so points to.
file(REAL_PATH ${pkgcfg_lib_HWY_hwy} hwy_file)
