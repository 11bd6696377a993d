# cmake --install: libraries, public headers, the tool, and what find_package(weir) and pkg-config
# need. CPack makes a Debian package of the same (./dev package).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# weir_install(PACKAGES p...): the floors that exist by now; `p` are the Debian packages without
# which nothing links against them.
function(weir_install)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "PACKAGES")
  # One name for users; the World is for their tests and has its own.
  add_library(weir_all INTERFACE)
  target_link_libraries(weir_all INTERFACE ${weir_floors})
  set(targets weir_all weir_testing ${weir_floors})
  foreach(target IN LISTS targets)
    string(REGEX REPLACE "^weir_" "" name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  set_target_properties(weir_all PROPERTIES EXPORT_NAME weir)
  install(TARGETS ${targets} EXPORT weir-targets)
  install(TARGETS weir)
  install(FILES docs/gcc-12.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(DIRECTORY weir/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir FILES_MATCHING
    PATTERN "*.hpp" PATTERN "*_fixture.hpp" EXCLUDE PATTERN "*contract*" EXCLUDE)

  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
  install(EXPORT weir-targets NAMESPACE weir:: DESTINATION ${package_dir})
  configure_package_config_file(cmake/weir-config.cmake.in weir-config.cmake
    INSTALL_DESTINATION ${package_dir})
  # Before 1.0, a minor version may change what users see (semver.org, 4).
  write_basic_package_version_file(weir-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/weir-config.cmake
    ${PROJECT_BINARY_DIR}/weir-config-version.cmake DESTINATION ${package_dir})
  weir_install_pkg_config()
  weir_package(${arg_PACKAGES})
endfunction()

# weir.pc: there are static libraries only, so everything is needed to link, the highest first.
# weir-testing.pc: the World, for tests.
function(weir_install_pkg_config)
  set(weir_libraries "")
  foreach(target IN LISTS weir_floors)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      set(weir_libraries "-l${target} ${weir_libraries}")
    endif()
  endforeach()
  file(RELATIVE_PATH weir_prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
    ${CMAKE_INSTALL_PREFIX})
  foreach(name weir weir-testing)
    configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endforeach()
endfunction()

function(weir_package)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME weir)
  set(CPACK_PACKAGE_CONTACT "The developers of Weir <weir@localhost>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "network services in C++ that use every core")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  list(JOIN ARGN ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
  include(CPack)
endfunction()
