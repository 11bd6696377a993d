# The port of this working tree: vcpkg install weir --overlay-ports=contrib/vcpkg
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
cmake_path(SET SOURCE_PATH NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../..")

vcpkg_check_features(OUT_FEATURE_OPTIONS features
  FEATURES
    brotli WEIR_BROTLI
    libdeflate WEIR_LIBDEFLATE
    spdlog WEIR_SPDLOG
    tls WEIR_TLS
    zlib WEIR_ZLIB
    zstd WEIR_ZSTD)
vcpkg_find_acquire_program(PKGCONFIG)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${features}
    "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}"
    -DWEIR_IPSEC_MB=OFF  # there is no port of ipsec-mb
    -DWEIR_TESTS=OFF
    -DWEIR_EXAMPLES=OFF
    -DWEIR_TOOLS=OFF
    -DWEIR_BENCH=OFF
    -DWEIR_FUZZ=OFF
    -DWEIR_WERROR=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/weir)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/weir")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
