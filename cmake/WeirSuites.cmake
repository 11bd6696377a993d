# ctest reads this file before it runs tests.

# weir_add_suites(BINARY PREFIX SKIPPED): adds a test for each suite of a gtest binary. Starting a
# sanitized binary costs up to 50 ms, so one process runs all cases of a suite. If the environment
# variable WEIR_TEST_CASES is set, it adds a test for each case instead. SKIPPED is the exit status
# of a process that skipped a case.
function(weir_add_suites binary prefix skipped)
  if(NOT EXISTS ${binary})
    add_test("${prefix}not_built" ${binary})  # fails
    return()
  endif()
  execute_process(COMMAND ${binary} --gtest_list_tests
    OUTPUT_VARIABLE output RESULT_VARIABLE status TIMEOUT 60)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${binary} does not list its tests: ${status}\n${output}")
  endif()
  # A suite is a line "Suite.", a case is a line "  Case". Comments may follow.
  string(REGEX REPLACE "[ \t]*#[^\n]*" "" output "${output}")
  string(REGEX MATCHALL "[^\n]+" lines "${output}")
  set(suite "")
  set(suites "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^  (.+)$")
      set(case ${CMAKE_MATCH_1})
      if(case MATCHES "^DISABLED_")
        continue()
      endif()
      math(EXPR cases_${suite} "${cases_${suite}} + 1")
      if(DEFINED ENV{WEIR_TEST_CASES})
        weir_add_suite("${prefix}${suite}${case}" "${suite}${case}" 1)
      endif()
    elseif(line MATCHES "^[A-Za-z0-9_/]+[.]$")
      set(suite ${line})
      list(APPEND suites ${suite})
      set(cases_${suite} 0)
    else()
      message(FATAL_ERROR "${binary} lists an unknown line: ${line}")
    endif()
  endforeach()
  if(NOT DEFINED ENV{WEIR_TEST_CASES})
    foreach(suite IN LISTS suites)
      if(cases_${suite} GREATER 0)
        string(REGEX REPLACE "[.]$" "" name ${suite})
        weir_add_suite("${prefix}${name}" "${suite}*" ${cases_${suite}})
      endif()
    endforeach()
  endif()
endfunction()

macro(weir_add_suite name filter cases)
  add_test("${name}" ${binary} "--gtest_filter=${filter}")
  math(EXPR seconds "120 + 10 * ${cases}")
  # ctest starts tests of high cost first.
  set_tests_properties("${name}" PROPERTIES TIMEOUT ${seconds} COST ${cases}
    SKIP_RETURN_CODE ${skipped})
endmacro()
