# Functions for the root list: floors, their tests, programs, system tests, fuzzers, checks.
set(WEIR_TEST_SECONDS_MAX 120)
set(WEIR_TEST_SKIPPED 77)  # the exit status of a test binary that skipped a case
set(weir_floors "")

# Splits `root`/**.cpp into <out>_TESTS (names that end in _test.cpp), <out>_FIXTURES (in folders
# named test) and <out>_SOURCES. ONLY and EXCEPT are regexes of the paths to take and to leave out.
function(weir_glob out root)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "ONLY;EXCEPT" "")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${root}/*.cpp)
  if(arg_ONLY)
    list(FILTER sources INCLUDE REGEX "${arg_ONLY}")
  endif()
  if(arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCEPT}")
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  set(fixtures ${sources})
  list(FILTER fixtures INCLUDE REGEX "/test/")
  list(FILTER sources EXCLUDE REGEX "/test/")
  set(${out}_FIXTURES ${fixtures} PARENT_SCOPE)
  set(${out}_SOURCES ${sources} PARENT_SCOPE)
  set(${out}_TESTS ${tests} PARENT_SCOPE)
endfunction()

# Uses a precompiled header that libraries and programs share, made on first use. The standard
# library and the headers of loop and task are half of the cost of compiling a file.
#   ground   the standard library, for the floors up to task
#   house    also loop and task, for the higher floors
#   http     also weir/http.hpp, for the floors above http
#   service  the same with WEIR_PROGRAM_OPTIONS, for programs
function(weir_precompile target headers)
  set(ground <algorithm> <atomic> <chrono> <coroutine> <deque> <expected> <functional> <map>
    <memory> <mutex> <optional> <span> <string> <string_view> <system_error> <utility> <vector>)
  set(house ${ground} <weir/loop/loop.hpp> <weir/task/task.hpp>)
  set(http ${house} <weir/http.hpp>)
  set(service ${http})
  if(NOT TARGET weir_${headers}_headers)
    set(source ${PROJECT_BINARY_DIR}/weir_${headers}_headers.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(weir_${headers}_headers STATIC ${source})
    target_compile_features(weir_${headers}_headers PRIVATE cxx_std_23)
    target_include_directories(weir_${headers}_headers PRIVATE ${PROJECT_SOURCE_DIR})
    target_precompile_headers(weir_${headers}_headers PRIVATE ${${headers}})
    if(headers STREQUAL "service")
      target_compile_options(weir_${headers}_headers PRIVATE ${WEIR_PROGRAM_OPTIONS})
    endif()
  endif()
  if(headers STREQUAL "service")
    target_compile_options(${target} PRIVATE ${WEIR_PROGRAM_OPTIONS})
  endif()
  target_precompile_headers(${target} REUSE_FROM weir_${headers}_headers)
endfunction()

# weir_batch(OUT TARGET MAX SOURCES s...): sets OUT to the sources that the target compiles. At most
# MAX sources of one room are compiled together, in a batch that includes them. Most of the cost of
# a small source is what it includes: the parts that headers declare are parsed, instantiated and
# compiled once for the batch. Those in weir_alone are never in a batch. CMake's own unity build
# names sources by absolute paths, so a compiler cache would know a batch in one folder only.
function(weir_batch out target max)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "SOURCES")
  set(compiled)
  set(batches)
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(max LESS 2 OR path IN_LIST weir_alone OR path MATCHES "^\\.\\./")
      list(APPEND compiled ${source})
      continue()
    endif()
    cmake_path(GET path PARENT_PATH room)
    string(REGEX REPLACE "/detail(/|$)" "\\1" room ${room})
    string(MAKE_C_IDENTIFIER "${room}" room)
    if(NOT DEFINED count_${room})
      set(count_${room} 0)
    endif()
    math(EXPR number "${count_${room}} / ${max}")
    math(EXPR count_${room} "${count_${room}} + 1")
    set(batch ${room}_${number})
    if(NOT DEFINED text_${batch})
      set(text_${batch} "")
      list(APPEND batches ${batch})
    endif()
    string(APPEND text_${batch} "#include \"${path}\"\n")
  endforeach()
  foreach(batch IN LISTS batches)
    set(file ${PROJECT_BINARY_DIR}/batches/${target}/${batch}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text_${batch}}" @ONLY)
    # A local name may hide a name in the unnamed namespace of another source. GCC takes a type of
    # an unnamed namespace for one of a header, because the batch includes it.
    set_property(SOURCE ${file} PROPERTY COMPILE_OPTIONS
      -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    list(APPEND compiled ${file})
  endforeach()
  set(${out} ${compiled} PARENT_SCOPE)
endfunction()

# weir_floor(NAME DEPENDS lower... LIBS external... INCLUDES folders... ONLY r EXCEPT r): makes
# library weir_NAME from weir/NAME/**.cpp; see weir_glob(). INCLUDES are folders of header-only
# libraries that only sources include: users of Weir do not need them.
function(weir_floor name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ONLY;EXCEPT" "DEPENDS;LIBS;INCLUDES")
  weir_glob(floor weir/${name} ONLY ${arg_ONLY} EXCEPT ${arg_EXCEPT})
  list(TRANSFORM arg_DEPENDS PREPEND weir_)
  set(weir_include_dirs $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(floor_SOURCES)
    weir_batch(sources weir_${name} "${WEIR_BATCH}" SOURCES ${floor_SOURCES})
    add_library(weir_${name} STATIC ${sources})
    target_include_directories(weir_${name} PUBLIC ${weir_include_dirs})
    target_link_libraries(weir_${name} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_LIBS})
    target_include_directories(weir_${name} SYSTEM PRIVATE ${arg_INCLUDES})
    target_compile_features(weir_${name} PUBLIC cxx_std_23)
    if(name MATCHES "^(base|os|loop|task)$")
      weir_precompile(weir_${name} ground)
    elseif(name MATCHES "^(doctor|web|telemetry|profile|http_testing|app|admin)$")
      weir_precompile(weir_${name} http)
    else()
      weir_precompile(weir_${name} house)
    endif()
  else()
    add_library(weir_${name} INTERFACE)
    target_include_directories(weir_${name} INTERFACE ${weir_include_dirs})
    target_link_libraries(weir_${name} INTERFACE ${arg_DEPENDS} ${arg_LIBS})
  endif()
  add_library(weir::${name} ALIAS weir_${name})
  if(NOT name MATCHES "^(testing|sim|http_testing)$")
    set(weir_floors ${weir_floors} weir_${name} PARENT_SCOPE)
  endif()
endfunction()

# Makes weir::weir, which links all floors except those for tests. In the build tree, targets have
# the names of the installed package.
function(weir_all_floors)
  add_library(weir_all INTERFACE)
  add_library(weir::weir ALIAS weir_all)
  target_link_libraries(weir_all INTERFACE ${weir_floors})
  # weir/profile walks the frame pointers of users' functions too. weir.pc has the same option.
  # Weir's own targets have it from the toolchain file.
  target_compile_options(weir_base INTERFACE $<INSTALL_INTERFACE:-fno-omit-frame-pointer>)
  if(NOT PROJECT_IS_TOP_LEVEL)
    target_compile_options(weir_base INTERFACE $<BUILD_INTERFACE:-fno-omit-frame-pointer>)
  endif()
endfunction()

set(weir_test_headers
  <gtest/gtest.h> <gmock/gmock.h> <algorithm> <chrono> <expected> <functional> <map> <memory>
  <optional> <random> <string> <vector>)

# Makes, on first use, the gtest main and the default precompiled header of test binaries.
function(weir_require_test_main)
  if(TARGET weir_test_main)
    return()
  endif()
  set(main ${WEIR_TEST_MAIN})
  if(NOT main)
    set(main ${PROJECT_BINARY_DIR}/weir_test_main.cpp)
    file(CONFIGURE OUTPUT ${main} CONTENT
"int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (RUN_ALL_TESTS() != 0) return 1;
  const bool some_skipped = testing::UnitTest::GetInstance()->skipped_test_count() > 0;
  return some_skipped ? ${WEIR_TEST_SKIPPED} : 0;
}
")
  endif()
  add_library(weir_test_main STATIC ${main})
  target_compile_options(weir_test_main PRIVATE ${WEIR_TEST_OPTIONS})
  target_link_libraries(weir_test_main PUBLIC GTest::gtest GTest::gmock Threads::Threads)
  target_precompile_headers(weir_test_main PRIVATE ${weir_test_headers})
endfunction()

# weir_compile_header_once(TARGET): compiles the inline functions of the target's own precompiled
# header into one object. Otherwise, clang compiles them again in each source that uses them, which
# is a quarter of the time of the largest test binaries. Smaller binaries gain nothing, and other
# compilers cannot do this.
function(weir_compile_header_once target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT WEIR_SANITIZE OR WEIR_TEST_MAIN)
    return()
  endif()
  set(header ${PROJECT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.pch)
  set(object ${PROJECT_BINARY_DIR}/CMakeFiles/${target}.dir/header.o)
  get_property(options DIRECTORY PROPERTY COMPILE_OPTIONS)
  list(FILTER options INCLUDE REGEX "^-[fgmOp]")
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  target_compile_options(${target} PRIVATE "SHELL:-Xclang -fmodules-codegen")
  # This is not a source of the target, because the target compiles its header after all sources
  # that are made.
  add_custom_command(OUTPUT ${object} DEPENDS ${header} VERBATIM
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} ${options} ${WEIR_TEST_OPTIONS} -Qunused-arguments
      -c ${header} -o ${object}
    COMMENT "Compiling the header of ${target}")
  add_custom_target(${target}_header DEPENDS ${object})
  target_link_libraries(${target} PRIVATE ${object})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${object})
  # The object has all inline functions. Some that no test uses need functions of C++20 that
  # Debian's gtest lacks.
  target_link_options(${target} PRIVATE -Wl,--gc-sections)
endfunction()

# Makes a gtest binary. Each of its suites is a test of ctest, see cmake/WeirSuites.cmake.
# PRECOMPILE are headers of Weir to precompile. Small binaries with the same headers share them.
function(weir_test_binary target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS;PRECOMPILE")
  weir_require_test_main()
  weir_batch(sources ${target} "${WEIR_TEST_BATCH}" SOURCES ${arg_SOURCES})
  add_executable(${target} ${sources})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  set_property(GLOBAL APPEND PROPERTY weir_test_binaries ${target})
  target_compile_options(${target} PRIVATE ${WEIR_TEST_OPTIONS})
  target_link_libraries(${target} PRIVATE ${arg_LIBS} weir_test_main)
  if(arg_PRECOMPILE)
    list(LENGTH arg_SOURCES count)
    string(MD5 shared "${arg_PRECOMPILE}")
    get_property(owner GLOBAL PROPERTY weir_test_headers_${shared})
    if(count LESS 50 AND owner)
      target_precompile_headers(${target} REUSE_FROM ${owner})
    else()
      list(TRANSFORM arg_PRECOMPILE REPLACE "(.+)" "<\\1>")
      target_precompile_headers(${target} PRIVATE ${weir_test_headers} ${arg_PRECOMPILE})
      if(count LESS 50)
        set_property(GLOBAL PROPERTY weir_test_headers_${shared} ${target})
      else()
        weir_compile_header_once(${target})
      endif()
    endif()
  else()
    target_precompile_headers(${target} REUSE_FROM weir_test_main)
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  string(REGEX REPLACE "^weir_|_test$" "" name ${target})
  set(suites ${PROJECT_BINARY_DIR}/${target}_suites.cmake)
  file(CONFIGURE OUTPUT ${suites} CONTENT
"include(\"${PROJECT_SOURCE_DIR}/cmake/WeirSuites.cmake\")
weir_add_suites(\"${PROJECT_BINARY_DIR}/tests/${target}\" \"${WEIR_TEST_PREFIX}${name}:\"
  ${WEIR_TEST_SKIPPED})
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${suites})
endfunction()

# weir_floor_tests(NAME DEPENDS also... PRECOMPILE headers... ONLY r EXCEPT r): makes binary
# weir_NAME_test from weir/NAME/**_test.cpp, if any; see weir_glob().
function(weir_floor_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ONLY;EXCEPT" "DEPENDS;PRECOMPILE")
  weir_glob(floor weir/${name} ONLY ${arg_ONLY} EXCEPT ${arg_EXCEPT})
  if(NOT floor_TESTS)
    return()
  endif()
  list(TRANSFORM arg_DEPENDS PREPEND weir_)
  weir_test_binary(weir_${name}_test SOURCES ${floor_TESTS} LIBS weir_${name} ${arg_DEPENDS}
    PRECOMPILE ${arg_PRECOMPILE})
endfunction()

# Makes the binary weir_tls_absent_test. It tests the sources that replace those of weir/tls in a
# build without OpenSSL, and links them in place of weir_tls.
function(weir_tls_absent_tests)
  weir_glob(absent weir/tls ONLY ${weir_tls_without_openssl})
  weir_glob(both weir/tls/crypto)  # tests of functions that both have
  list(FILTER both_TESTS INCLUDE REGEX "/(sha[12]|hmac|random)_test\\.cpp$")
  add_library(weir_tls_absent STATIC EXCLUDE_FROM_ALL ${absent_SOURCES})
  target_link_libraries(weir_tls_absent PUBLIC weir_net)
  weir_precompile(weir_tls_absent house)
  weir_glob(absent weir/tls/detail/absent)
  weir_test_binary(weir_tls_absent_test SOURCES ${absent_TESTS} ${both_TESTS}
    LIBS weir_tls_absent weir_sim)
endfunction()

# weir_floor_fixtures(NAME): makes library weir_NAME_fixtures of the fixtures of a floor. It is for
# test binaries and is not installed.
function(weir_floor_fixtures name)
  weir_glob(floor weir/${name})
  weir_require_test_main()
  add_library(weir_${name}_fixtures STATIC ${floor_FIXTURES})
  target_link_libraries(weir_${name}_fixtures PUBLIC weir_${name} weir_test_main)
  weir_precompile(weir_${name}_fixtures house)
endfunction()

# weir_programs(FOLDER PREFIX p [BENCHMARK] LIBS l...): makes an executable <p>name from each
# FOLDER/name.cpp. It links all floors, or only LIBS.
function(weir_programs folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "BENCHMARK" "PREFIX" "LIBS")
  set(headers ground)
  if(NOT arg_LIBS)
    set(headers service)
    set(arg_LIBS ${weir_floors})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    set(target ${arg_PREFIX}${name})
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE ${arg_LIBS})
    if(arg_BENCHMARK)
      target_link_libraries(${target} PRIVATE benchmark::benchmark_main)
    endif()
    weir_precompile(${target} ${headers})
    set_target_properties(${target} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    set_property(GLOBAL APPEND PROPERTY weir_programs_of_${folder} ${target})
  endforeach()
endfunction()

# Makes one executable from all sources of a folder, if any. Its tests are <target>_tool_test.
function(weir_program_of_folder target folder)
  weir_glob(program ${folder})
  if(NOT program_SOURCES)
    return()
  endif()
  set(main ${PROJECT_SOURCE_DIR}/${folder}/main.cpp)
  list(REMOVE_ITEM program_SOURCES ${main})
  add_library(${target}_tool STATIC ${program_SOURCES})
  weir_precompile(${target}_tool service)
  target_link_libraries(${target}_tool PUBLIC ${weir_floors})
  add_executable(${target} ${main})
  target_link_libraries(${target} PRIVATE ${target}_tool)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(program_TESTS AND WEIR_TESTS)
    weir_test_binary(${target}_tool_test SOURCES ${program_TESTS} LIBS ${target}_tool weir_sim
      PRECOMPILE weir/http.hpp weir/http_testing/test_client.hpp)
  endif()
endfunction()

# weir_embed(TARGET HEADER NAMESPACE FILES f...): embeds ASCII files as constants that the header
# declares: a-b.json becomes NAMESPACE::a_b.
function(weir_embed target header namespace)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "FILES")
  set(source "#include \"${header}\"\n\nnamespace ${namespace} {\n")
  foreach(path IN LISTS arg_FILES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    cmake_path(GET path STEM name)
    string(REPLACE "-" "_" name ${name})
    file(READ ${path} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND source "static constexpr char ${name}_bytes[] = {${bytes}};\n"
      "const std::string_view ${name}(${name}_bytes, sizeof ${name}_bytes);\n")
  endforeach()
  set(file ${PROJECT_BINARY_DIR}/${target}_embedded.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "${source}}  // namespace ${namespace}\n" @ONLY)
  target_sources(${target} PRIVATE ${file})
endfunction()

# tests/**.cpp: system tests, which run the example programs over real sockets.
function(weir_system_tests)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*.cpp)
  # Projects of users, for *_test.py, and a test in a process of its own.
  list(FILTER sources EXCLUDE REGEX "/(consumer|embed|openssl_user)/")
  if(NOT sources)
    return()
  endif()
  weir_test_binary(weir_system_test SOURCES ${sources} LIBS ${weir_floors} weir_http_testing
    PRECOMPILE weir/http.hpp weir/app.hpp weir/http_testing/test_client.hpp)
  target_include_directories(weir_system_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(weir_system_test PRIVATE
    WEIR_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data")
  target_compile_definitions(weir_system_test PRIVATE WEIR_TOOL_PROGRAM="$<TARGET_FILE:weir>")
  add_dependencies(weir_system_test weir)
  get_property(examples GLOBAL PROPERTY weir_programs_of_examples)
  if(examples)
    list(GET examples 0 first)
    add_dependencies(weir_system_test ${examples})
    target_compile_definitions(weir_system_test PRIVATE
      WEIR_EXAMPLES_DIR="$<TARGET_FILE_DIR:${first}>")
  endif()
endfunction()

# tools/differential: tests that Weir reads mutated requests as the reference and the peers do, and
# conversations of HTTP/2 as nghttp2 does.
function(weir_differential_tests)
  weir_glob(http2 tools/differential/http2)
  weir_test_binary(weir_differential_test SOURCES ${http2_FIXTURES} ${http2_TESTS}
    LIBS weir_http_testing PkgConfig::WEIR_NGHTTP2)
  set(folder ${PROJECT_SOURCE_DIR}/tools/differential)
  add_test(NAME ${WEIR_TEST_PREFIX}differential COMMAND python3 ${folder}/differential.py --as-test
    --weir $<TARGET_FILE:differential_reporter> --build ${PROJECT_SOURCE_DIR}/build --cases 600)
  add_test(NAME ${WEIR_TEST_PREFIX}differential_selftest
    COMMAND python3 ${folder}/differential_test.py)
  set_tests_properties(${WEIR_TEST_PREFIX}differential ${WEIR_TEST_PREFIX}differential_selftest
    PROPERTIES TIMEOUT ${WEIR_TEST_SECONDS_MAX})
endfunction()

# tools/simulate: tests that a seed gives the same run in processes with other addresses.
function(weir_simulate_tests)
  set(mark)
  if(WEIR_SANITIZE)
    set(mark --sanitized)
  endif()
  add_test(NAME ${WEIR_TEST_PREFIX}simulate_processes
    COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/simulate/processes_test.py
    --simulate $<TARGET_FILE:simulate> ${mark})
  set_tests_properties(${WEIR_TEST_PREFIX}simulate_processes
    PROPERTIES TIMEOUT ${WEIR_TEST_SECONDS_MAX})
endfunction()

# tests/*_test.py and tools/autobahn, which start programs.
function(weir_program_tests)
  set(folder ${PROJECT_SOURCE_DIR}/tests)
  add_test(NAME ${WEIR_TEST_PREFIX}httparena COMMAND python3 ${folder}/httparena_test.py
    --program $<TARGET_FILE:contrib_httparena>)
  add_test(NAME ${WEIR_TEST_PREFIX}web_page COMMAND python3 ${folder}/web_page_test.py
    --program $<TARGET_FILE:example_web_page>
    --screenshot ${PROJECT_BINARY_DIR}/tests/web_page.png)
  add_test(NAME ${WEIR_TEST_PREFIX}autobahn
    COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/autobahn/autobahn.py --as-test
    --server $<TARGET_FILE:example_websocket_echo> --client $<TARGET_FILE:autobahn_client>)
  add_test(NAME ${WEIR_TEST_PREFIX}websocket_peers COMMAND python3 ${folder}/websocket_peers_test.py
    --server $<TARGET_FILE:example_websocket_echo> --client $<TARGET_FILE:autobahn_client>)
  add_test(NAME ${WEIR_TEST_PREFIX}doctor_faults COMMAND python3 ${folder}/doctor_test.py
    --weir $<TARGET_FILE:weir> --hello $<TARGET_FILE:example_hello>)
  add_test(NAME ${WEIR_TEST_PREFIX}otlp COMMAND python3 ${folder}/otlp_test.py
    --program $<TARGET_FILE:example_traces>)
  if(WEIR_PROGRAM_OPTIONS)
    # Without optimisation, the profile shows the wrappers of the standard library, and few of them
    # are among the heaviest functions of two profiles. Other options need their own headers.
    target_compile_options(example_profile PRIVATE -O1)
    set_target_properties(example_profile PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endif()
  add_test(NAME ${WEIR_TEST_PREFIX}profile COMMAND python3 ${folder}/profile_test.py
    --program $<TARGET_FILE:example_profile>)
  add_test(NAME ${WEIR_TEST_PREFIX}metrics COMMAND python3 ${folder}/metrics_test.py
    --example $<TARGET_FILE:example_metrics>)
  add_test(NAME ${WEIR_TEST_PREFIX}admin_page COMMAND python3 ${folder}/admin_page_test.py
    --program $<TARGET_FILE:example_operated> --tool $<TARGET_FILE:weir>
    --screenshot ${PROJECT_BINARY_DIR}/tests/admin_page.png)
  add_test(NAME ${WEIR_TEST_PREFIX}guide COMMAND python3 ${folder}/guide_test.py
    --build ${PROJECT_BINARY_DIR})
  set(tests httparena web_page autobahn websocket_peers doctor_faults otlp profile metrics
    admin_page guide)
  list(TRANSFORM tests PREPEND "${WEIR_TEST_PREFIX}")
  set_tests_properties(${tests} PROPERTIES
    TIMEOUT ${WEIR_TEST_SECONDS_MAX} SKIP_RETURN_CODE ${WEIR_TEST_SKIPPED})
  # They wait for real time. So they start early, beside tests that compute.
  set_tests_properties(${WEIR_TEST_PREFIX}profile ${WEIR_TEST_PREFIX}doctor_faults
    ${WEIR_TEST_PREFIX}admin_page ${WEIR_TEST_PREFIX}otlp PROPERTIES COST 90)
endfunction()

# fuzz/NAME.cpp: makes a libFuzzer program with WEIR_LIBFUZZER. Otherwise, it makes a test that
# replays fuzz/corpus/NAME, and a test that mutates these inputs for some seconds.
function(weir_fuzzers)
  add_library(weir_fuzz_replay OBJECT ${PROJECT_SOURCE_DIR}/fuzz/replay/main.cpp)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*.cpp)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    set(target fuzz_${name})
    add_executable(${target} ${source})
    set_property(GLOBAL APPEND PROPERTY weir_fuzzers ${target})
    target_link_libraries(${target} PRIVATE ${weir_floors})
    weir_precompile(${target} service)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
    if(WEIR_LIBFUZZER)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
      continue()
    endif()
    target_link_libraries(${target} PRIVATE weir_fuzz_replay)
    set(corpus ${PROJECT_SOURCE_DIR}/fuzz/corpus/${name})
    set(test ${WEIR_TEST_PREFIX}fuzz_${name})
    add_test(NAME ${test}_replay COMMAND ${target} ${corpus})
    add_test(NAME ${test}_run COMMAND ${target} --seconds 3 ${corpus})
    set_tests_properties(${test}_replay ${test}_run PROPERTIES TIMEOUT ${WEIR_TEST_SECONDS_MAX})
  endforeach()
  target_link_libraries(fuzz_server_fuzz PRIVATE weir_http_testing)
  target_link_libraries(fuzz_h2_server_fuzz PRIVATE weir_http_testing)
  target_link_libraries(fuzz_ws_connection_fuzz PRIVATE weir_testing)
  target_link_libraries(fuzz_ws_deflate_fuzz PRIVATE weir_testing)
  target_link_libraries(fuzz_hpack_fuzz PRIVATE PkgConfig::WEIR_NGHTTP2)
endfunction()

# The target `benchmarks`: the programs that no test runs.
function(weir_gather_programs)
  get_property(programs DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  get_property(tests GLOBAL PROPERTY weir_test_binaries)
  get_property(fuzzers GLOBAL PROPERTY weir_fuzzers)
  list(REMOVE_ITEM programs ${tests} ${fuzzers})
  set(executables)
  foreach(target IN LISTS programs)
    get_target_property(type ${target} TYPE)
    get_target_property(unasked ${target} EXCLUDE_FROM_ALL)
    if(type STREQUAL EXECUTABLE AND NOT unasked)
      list(APPEND executables ${target})
    endif()
  endforeach()
  set(benchmarks ${executables})
  list(FILTER benchmarks INCLUDE REGEX "^(micro|inside|gate)_|_limit$|_load$")
  add_custom_target(benchmarks DEPENDS ${benchmarks})
endfunction()

# Projects of users that build Weir. Only `./dev test --all` runs those with the label
# `all`.
function(weir_embed_tests)
  set(folder ${PROJECT_SOURCE_DIR}/tests)
  set(embed python3 ${folder}/embed_test.py)
  add_test(NAME embed_fetchcontent_clang
    COMMAND ${embed} --way fetchcontent --compiler clang++-19)
  add_test(NAME embed_subdirectory_gcc COMMAND ${embed} --way subdirectory --compiler g++-12)
  add_test(NAME embed_fetchcontent_gcc COMMAND ${embed} --way fetchcontent --compiler g++-12)
  add_test(NAME embed_subdirectory_clang
    COMMAND ${embed} --way subdirectory --compiler clang++-19)
  add_test(NAME embed_without_parts COMMAND ${embed} --way subdirectory --without-parts)
  add_test(NAME conan
    COMMAND python3 ${folder}/conan_test.py --venv ${PROJECT_SOURCE_DIR}/build/conan)
  add_test(NAME vcpkg_port COMMAND python3 ${folder}/vcpkg_port_test.py)
  set(all embed_fetchcontent_gcc embed_subdirectory_clang embed_without_parts conan vcpkg_port)
  set_tests_properties(embed_fetchcontent_clang embed_subdirectory_gcc ${all} PROPERTIES
    TIMEOUT 1200 PROCESSORS 2 COST 90 SKIP_RETURN_CODE ${WEIR_TEST_SKIPPED})
  set_tests_properties(${all} PROPERTIES LABELS all)
endfunction()

# Tests that run the source checks, and tests that each check can fail.
function(weir_source_checks)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/tools/check/check.py)
    return()
  endif()
  add_test(NAME check COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/check/check.py
    --root ${PROJECT_SOURCE_DIR} --build ${PROJECT_BINARY_DIR})
  add_test(NAME check_selftest
    COMMAND python3 -m unittest discover -s ${PROJECT_SOURCE_DIR}/tools/check -p *_test.py)
  add_test(NAME headers_selftest
    COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/headers/headers_test.py)
  add_test(NAME plan_selftest
    COMMAND python3 -m unittest discover -s ${PROJECT_SOURCE_DIR}/tools/plan -p *_test.py)
  add_test(NAME stress_selftest
    COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/stress/stress_test.py)
  # Debian's interpreter: another python3 in the path lacks Debian's bindings of clang.
  add_test(NAME mutate_selftest
    COMMAND /usr/bin/python3 -m unittest discover -s ${PROJECT_SOURCE_DIR}/tools/mutate
      -p *_test.py)
  set_tests_properties(check check_selftest headers_selftest plan_selftest stress_selftest
    mutate_selftest PROPERTIES TIMEOUT 1500)  # check compiles each header alone
  set_tests_properties(check PROPERTIES COST 100)  # starts first, because it takes longest
  set(install_test
    python3 ${PROJECT_SOURCE_DIR}/tests/install_test.py --build ${PROJECT_BINARY_DIR})
  add_test(NAME install COMMAND ${install_test})
  add_test(NAME package COMMAND ${install_test} --package)
  add_test(NAME compile_errors COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/compile_errors_test.py)
  set_tests_properties(install package compile_errors PROPERTIES TIMEOUT 600)
  weir_embed_tests()
  # Tests all requested families, even if the toolchain file fails to apply one. Fortify needs
  # optimisation.
  if(weir_hardening AND NOT WEIR_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo)$")
    string(REPLACE ";" "," families "${weir_hardening}")
    add_test(NAME hardened COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/hardened_test.py
      --build ${PROJECT_BINARY_DIR} --program $<TARGET_FILE:example_hello> --families ${families})
  endif()
  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*_test.py)
  foreach(test IN LISTS tests)
    cmake_path(GET test STEM name)
    add_test(NAME bench_${name} COMMAND python3 ${test})
    set_tests_properties(bench_${name} PROPERTIES TIMEOUT ${WEIR_TEST_SECONDS_MAX})
  endforeach()
endfunction()
