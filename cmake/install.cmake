# What `cmake --install` puts where: the program, one archive of all stages with the public headers (deeptail::deeptail of
# the CMake package, deeptail.pc), and under share/deeptail the models, distributions, counts and suites.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The archive is called deeptail-cxx: -ldeeptail stays free for a shared library with a C interface.
add_library(deeptail_cxx STATIC)
foreach(stage core compute text patterns tensors hub model sampling inputs events activations prior splitting closed_form estimators loss truth runs report)
  target_sources(deeptail_cxx PRIVATE $<TARGET_OBJECTS:deeptail_${stage}>)
endforeach()
set_target_properties(deeptail_cxx PROPERTIES OUTPUT_NAME deeptail-cxx EXPORT_NAME deeptail LINKER_LANGUAGE CXX)
target_compile_features(deeptail_cxx INTERFACE cxx_std_20)
target_compile_definitions(deeptail_cxx INTERFACE $<INSTALL_INTERFACE:DEEPTAIL_INSTALLED>)
target_include_directories(deeptail_cxx INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(deeptail_cxx INTERFACE fmt::fmt Threads::Threads ZLIB::ZLIB PkgConfig::HWY PkgConfig::PCRE2 PkgConfig::UTF8PROC PkgConfig::CURL)
set(deeptail_private_libraries "-lz -lpthread")
if(DEEPTAIL_HAS_CUDA)
  target_sources(deeptail_cxx PRIVATE $<TARGET_OBJECTS:deeptail_cuda> $<TARGET_OBJECTS:deeptail_cuda_kernels>)
  target_link_libraries(deeptail_cxx INTERFACE ${CUDA_cudart_static_LIBRARY} rt dl)
  string(APPEND deeptail_private_libraries " ${CUDA_cudart_static_LIBRARY} -lrt -ldl")
endif()

install(TARGETS deeptail_cxx EXPORT deeptail ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY include/deeptail DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/deeptail)
install(EXPORT deeptail NAMESPACE deeptail:: FILE deeptail-targets.cmake DESTINATION ${package} COMPONENT library)
configure_package_config_file(cmake/deeptail-config.cmake.in ${CMAKE_BINARY_DIR}/package/deeptail-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/deeptail-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/deeptail-config.cmake ${CMAKE_BINARY_DIR}/package/deeptail-config-version.cmake
  DESTINATION ${package} COMPONENT library)
# pkg-config finds the prefix from where the file lies, so that an installed copy may be moved.
file(RELATIVE_PATH deeptail_pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/deeptail.pc.in ${CMAKE_BINARY_DIR}/package/deeptail.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/package/deeptail.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

# The C interface: deeptail::c of the CMake package, deeptail-c.pc.
install(TARGETS deeptail_shared EXPORT deeptail LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
configure_file(cmake/deeptail-c.pc.in ${CMAKE_BINARY_DIR}/package/deeptail-c.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/package/deeptail-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

install(DIRECTORY models distributions truth suites DESTINATION share/deeptail COMPONENT program)
if(DEEPTAIL_CLI)
  install(TARGETS deeptail RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()

include(cmake/python.cmake)

# make package: a .deb whose dependencies are those of the program's shared libraries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME deeptail)
set(CPACK_PACKAGE_CONTACT "the deeptail project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "probabilities of rare outputs of language models, with intervals")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL OFF)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libcurl4-openssl-dev, libfmt-dev, libhwy-dev, libpcre2-dev, libutf8proc-dev, zlib1g-dev")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
