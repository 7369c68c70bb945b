# Rules for `cmake --install`. find_package(fxopt) provides the layers below the command:
# fxopt::core, fxopt::ir and fxopt::passes. Their compile options do not reach their users.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(fxopt_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/fxopt")
set(fxopt_header_dir "${CMAKE_INSTALL_INCLUDEDIR}/fxopt")

# fxopt_export_layer(TARGET LIBRARY...): provides the layer fxopt_NAME as fxopt::NAME, in the build
# and installed, with the headers of the calling folder. Users also link the libraries.
function(fxopt_export_layer target)
  string(REPLACE "fxopt_" "" name "${target}")
  add_library(fxopt::${name} ALIAS ${target})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  list(FILTER headers EXCLUDE REGEX "^io/(json|pb|record_pb)")  # these use protobuf's messages
  target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers})
  target_include_directories(${target} INTERFACE "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>")
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_link_libraries(${target} INTERFACE ${ARGN})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT fxoptTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS DESTINATION "${fxopt_header_dir}")
endfunction()

# fxopt_export_inner(TARGET...): exports internal dependencies of the layers.
function(fxopt_export_inner)
  foreach(target IN LISTS ARGN)
    string(REPLACE "fxopt_" "" name "${target}")
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS ${target} EXPORT fxoptTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endforeach()
endfunction()

# fxopt_install_package(): installs the rest. Call it after all layers are defined.
function(fxopt_install_package)
  install(FILES "${PROJECT_BINARY_DIR}/generated/core/version.h" DESTINATION "${fxopt_header_dir}/core")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/schemas/" DESTINATION "${CMAKE_INSTALL_DATADIR}/fxopt/schemas"
    FILES_MATCHING PATTERN "*.proto" PATTERN "*.json")
  configure_package_config_file(scripts/cmake/fxoptConfig.cmake.in generated/fxoptConfig.cmake
    INSTALL_DESTINATION "${fxopt_package_dir}")
  write_basic_package_version_file(generated/fxoptConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/generated/fxoptConfig.cmake"
    "${PROJECT_BINARY_DIR}/generated/fxoptConfigVersion.cmake" DESTINATION "${fxopt_package_dir}")
  install(EXPORT fxoptTargets NAMESPACE fxopt:: DESTINATION "${fxopt_package_dir}")
endfunction()
