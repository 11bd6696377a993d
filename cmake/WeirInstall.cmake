# Installs libraries, headers, the tool, and the files for find_package(weir) and pkg-config. CPack
# makes a Debian package from these (./dev package).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Installs the library, and the tool if it is built.
function(weir_install)
  set(targets weir_all weir_testing weir_sim weir_http_testing ${weir_floors})
  foreach(target IN LISTS targets)
    string(REGEX REPLACE "^weir_" "" name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  set_target_properties(weir_all PROPERTIES EXPORT_NAME weir)
  install(TARGETS ${targets} EXPORT weir-targets)
  set(installed ${targets})  # all that a package needs
  if(WEIR_TOOLS)
    install(TARGETS weir)
    list(APPEND installed weir)
  endif()
  if(PROJECT_IS_TOP_LEVEL)
    add_custom_target(installed DEPENDS ${installed})
  endif()
  set(doc ${CMAKE_INSTALL_DATAROOTDIR}/doc/weir)
  install(FILES docs/gcc-12.md DESTINATION ${doc})
  install(FILES LICENSE DESTINATION ${doc} RENAME copyright)
  install(DIRECTORY weir/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir FILES_MATCHING
    PATTERN "*.hpp" PATTERN "test" EXCLUDE)

  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
  install(EXPORT weir-targets NAMESPACE weir:: DESTINATION ${package_dir})
  configure_package_config_file(cmake/weir-config.cmake.in weir-config.cmake
    INSTALL_DESTINATION ${package_dir})
  # Before 1.0, a minor version may change the interface (semver.org, 4).
  write_basic_package_version_file(weir-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/weir-config.cmake
    ${PROJECT_BINARY_DIR}/weir-config-version.cmake DESTINATION ${package_dir})
  weir_install_pkg_config()
  if(PROJECT_IS_TOP_LEVEL)
    weir_package()
  endif()
endfunction()

# weir.pc lists all libraries, the highest floor first, because they are static.
# weir-sim.pc is the World, for tests.
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
  foreach(name weir weir-sim)
    configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endforeach()
endfunction()

# The Debian package, which depends on the packages that its users link.
function(weir_package)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME weir)
  set(CPACK_PACKAGE_CONTACT "The developers of Weir <weir@localhost>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "network services in C++ that use every core")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  list(JOIN weir_packages ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
  include(CPack)
endfunction()
