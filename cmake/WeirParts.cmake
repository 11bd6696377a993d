# Finds the libraries that Weir needs, and decides which optional parts are built.
#
# Imported targets are global, so that a project that embeds Weir can link them. Those of pkg-config
# have names of Weir's own, so that such a project can search for the same libraries itself.

find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "weir: pkg-config is missing (Debian: pkg-config)")
endif()
find_package(Threads REQUIRED GLOBAL)

# weir_require_module(NAME PACKAGE MODULE): makes PkgConfig::NAME of a module that the library
# needs.
function(weir_require_module name package module)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "weir: ${module} is missing (Debian: ${package})")
  endif()
endfunction()

# weir_require_header(NAME PACKAGE HEADER): sets NAME to the folder of a header that the sources of
# the library or of an option need.
function(weir_require_header name package header)
  find_path(${name} ${header})
  mark_as_advanced(${name})
  if(NOT ${name})
    message(FATAL_ERROR "weir: ${header} is missing (Debian: ${package})")
  endif()
endfunction()

# weir_option_needs(OPTION FOUND NAME PACKAGE): ends with an error unless FOUND is true.
function(weir_option_needs option found name package)
  if(NOT found)
    message(FATAL_ERROR "weir: ${option} needs ${name} (Debian: ${package}); "
      "-D${option}=OFF builds without it")
  endif()
endfunction()

# weir_part(OPTION FOUND LIBRARY PACKAGE MISSING): sets `has_OPTION` to true if an optional part is
# built. OPTION is AUTO (if its library is found), ON (an error without the library) or OFF.
# Otherwise, it prints a line about what is missing.
function(weir_part option found library package missing)
  set(value "${${option}}")
  if(value STREQUAL "AUTO" OR value)
    if(found)
      set(has_${option} TRUE PARENT_SCOPE)
      return()
    endif()
    if(NOT value STREQUAL "AUTO")
      message(FATAL_ERROR "weir: ${option} is ${value}, but ${library} is missing "
        "(Debian: ${package})")
    endif()
    set(remedy "Debian: ${package}; -D${option}=ON makes it required")
  else()
    set(remedy "${option} is ${value}")
  endif()
  set(has_${option} FALSE PARENT_SCOPE)
  message(STATUS "weir: without ${library}: ${missing} (${remedy})")
endfunction()

# --- Needed by the library ------------------------------------------------------------------------

weir_require_module(WEIR_LIBURING liburing-dev liburing)
weir_require_module(WEIR_RE2 libre2-dev re2)
# Only sources include CLI11 and toml++, so users of Weir do not need them.
if(TARGET CLI11::CLI11)  # the outer project already has CLI11
  set(weir_cli11 $<TARGET_PROPERTY:CLI11::CLI11,INTERFACE_INCLUDE_DIRECTORIES>)
else()
  weir_require_header(WEIR_CLI11 libcli11-dev CLI/CLI.hpp)
  set(weir_cli11 ${WEIR_CLI11})
endif()
weir_require_header(WEIR_TOMLPLUSPLUS libtomlplusplus-dev toml++/toml.h)

# --- Optional parts -------------------------------------------------------------------------------

foreach(part IN ITEMS TLS IPSEC_MB ZLIB LIBDEFLATE BROTLI ZSTD SPDLOG)
  set(WEIR_${part} AUTO CACHE STRING "AUTO: if the library is found, ON: required, OFF: not built")
  set_property(CACHE WEIR_${part} PROPERTY STRINGS AUTO ON OFF)
endforeach()

set(weir_packages pkg-config liburing-dev libre2-dev)  # Debian packages that users of Weir need
set(weir_modules "liburing re2")                        # of weir.pc
set(weir_checks "")                                     # of weir-config.cmake

# The sources of weir/tls that need no OpenSSL. Those in detail/absent replace the others.
string(CONCAT weir_tls_without_openssl
  "/tls/detail/(absent/.*|session|records/multi_buffer_gcm)\\.cpp$|"
  "/tls/crypto/detail/(sha[12]|hmac|verification_key)\\.cpp$|"
  "/tls/(certificate/error|options|program_options|stream|ticket_keys)\\.cpp$")
if(WEIR_TLS)
  find_package(OpenSSL 3.0 QUIET COMPONENTS SSL Crypto GLOBAL)
endif()
weir_part(WEIR_TLS "${OPENSSL_FOUND}" OpenSSL libssl-dev
  "no TLS, encrypted cookies, JSON Web Tokens with public keys")
set(has_WEIR_IPSEC_MB FALSE)
if(has_WEIR_TLS)
  set(weir_tls_libraries OpenSSL::SSL OpenSSL::Crypto)
  set(weir_tls_files EXCEPT /tls/detail/absent/)
  list(APPEND weir_packages libssl-dev)
  string(APPEND weir_modules " openssl")
  string(APPEND weir_checks "find_dependency(OpenSSL 3.0 COMPONENTS SSL Crypto)\n")
  # For weir/tls/detail/records/multi_buffer_gcm.cpp: AES-GCM on x86-64. It has no .pc file.
  find_path(WEIR_IPSEC_MB_HEADER intel-ipsec-mb.h)
  find_library(WEIR_IPSEC_MB_LIBRARY IPSec_MB)
  mark_as_advanced(WEIR_IPSEC_MB_HEADER WEIR_IPSEC_MB_LIBRARY)
  set(found FALSE)
  if(WEIR_IPSEC_MB_HEADER AND WEIR_IPSEC_MB_LIBRARY)
    set(found TRUE)
  endif()
  if(found OR WEIR_IPSEC_MB STREQUAL "ON" OR CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    weir_part(WEIR_IPSEC_MB ${found} ipsec-mb libipsec-mb-dev "slower records of TLS on x86-64")
  endif()
else()
  set(weir_tls_files ONLY ${weir_tls_without_openssl})
endif()
if(has_WEIR_IPSEC_MB)
  list(APPEND weir_tls_libraries IPSec_MB)
  list(APPEND weir_packages libipsec-mb-dev)
  set(weir_ipsec_mb_flag "-lIPSec_MB ")  # of weir.pc
endif()

# Libraries of compression. Only weir/compression includes them.
function(weir_compression_library name library package missing)
  if(WEIR_${name})
    pkg_check_modules(WEIR_${name} QUIET IMPORTED_TARGET GLOBAL ${ARGN})
  endif()
  weir_part(WEIR_${name} "${WEIR_${name}_FOUND}" ${library} ${package} "${missing}")
  if(NOT has_WEIR_${name})
    return()
  endif()
  list(APPEND weir_compression_libraries PkgConfig::WEIR_${name})
  list(APPEND weir_compression_flags WEIR_${name}=1)  # for the sources of weir/compression
  list(APPEND weir_packages ${package})
  list(JOIN ARGN " " modules)
  string(APPEND weir_modules " ${modules}")
  string(APPEND weir_checks
    "pkg_check_modules(WEIR_${name} REQUIRED QUIET IMPORTED_TARGET ${modules})\n")
  return(PROPAGATE weir_compression_libraries weir_compression_flags weir_packages weir_modules
    weir_checks)
endfunction()
weir_compression_library(ZLIB zlib zlib1g-dev
  "no gzip and deflate, no compressed messages of WebSockets" zlib)
weir_compression_library(LIBDEFLATE libdeflate libdeflate-dev
  "zlib compresses whole bodies, which is slower" libdeflate)
weir_compression_library(BROTLI brotli libbrotli-dev "no brotli" libbrotlienc libbrotlidec)
weir_compression_library(ZSTD zstd libzstd-dev "no zstd" libzstd)

if(WEIR_SPDLOG)
  pkg_check_modules(WEIR_SPDLOG QUIET spdlog)
endif()
weir_part(WEIR_SPDLOG "${WEIR_SPDLOG_FOUND}" spdlog libspdlog-dev "no spdlog_sink()")
set(weir_log_files)
if(NOT has_WEIR_SPDLOG)
  set(weir_log_files EXCEPT /log/spdlog_sink)
  set(weir_defines " -DWEIR_WITHOUT_SPDLOG")  # of weir.pc
endif()

# --- Needed by what is built beside the library ---------------------------------------------------

foreach(option IN ITEMS WEIR_EXAMPLES WEIR_TOOLS WEIR_BENCH WEIR_FUZZ WEIR_TESTS)
  if(${option})
    weir_option_needs(${option} "${has_WEIR_TLS}" OpenSSL libssl-dev)
  endif()
endforeach()
if(WEIR_TESTS)
  find_package(GTest QUIET)
  weir_option_needs(WEIR_TESTS "${GTest_FOUND}" GoogleTest "libgtest-dev libgmock-dev")
  find_path(WEIR_NLOHMANN_JSON nlohmann/json.hpp)  # for weir/json/round_trip_test.cpp
  weir_option_needs(WEIR_TESTS "${WEIR_NLOHMANN_JSON}" nlohmann-json nlohmann-json3-dev)
endif()
if(WEIR_TESTS OR WEIR_FUZZ)
  pkg_check_modules(WEIR_NGHTTP2 QUIET IMPORTED_TARGET libnghttp2)  # the judge of HPACK in tests
  foreach(option IN ITEMS WEIR_TESTS WEIR_FUZZ)
    if(${option})
      weir_option_needs(${option} "${WEIR_NGHTTP2_FOUND}" nghttp2 libnghttp2-dev)
    endif()
  endforeach()
endif()
if(WEIR_BENCH AND NOT WEIR_SANITIZE)
  find_package(benchmark QUIET)
  weir_option_needs(WEIR_BENCH "${benchmark_FOUND}" "Google Benchmark" libbenchmark-dev)
  find_package(simdjson CONFIG QUIET)  # for bench/micro/json_bench.cpp
  weir_option_needs(WEIR_BENCH "${simdjson_FOUND}" simdjson libsimdjson-dev)
  pkg_check_modules(LIBUV QUIET IMPORTED_TARGET libuv)  # optional, for inside_pool_hop
  pkg_check_modules(PROMETHEUS QUIET IMPORTED_TARGET prometheus-cpp-core)  # for inside_metrics
endif()
