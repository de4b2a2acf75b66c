# The component python: what `make python` puts into build/python and pip into a wheel. A package of Python files, the shared
# library, and the zoo. pip takes the Python files itself (pyproject.toml).
set(python_install EXCLUDE_FROM_ALL COMPONENT python)
install(FILES $<TARGET_FILE:deeptail_shared> DESTINATION deeptail/lib RENAME libdeeptail.so ${python_install})
if(DEEPTAIL_WHEEL)
  install(FILES ${hwy_file} DESTINATION deeptail/lib RENAME libhwy.so.1 ${python_install})
endif()
install(DIRECTORY models distributions truth suites DESTINATION deeptail/data ${python_install})
if(NOT SKBUILD)
  install(DIRECTORY python/deeptail DESTINATION . ${python_install} PATTERN __pycache__ EXCLUDE)
endif()
