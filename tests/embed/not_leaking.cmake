# Compares what a project sees before and after it embeds Weir. Only names of Weir's own may be new.
set(directory_properties COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_OPTIONS
  LINK_LIBRARIES TESTS)

macro(remember prefix)
  get_cmake_property(${prefix}_names VARIABLES)
  list(FILTER ${prefix}_names INCLUDE REGEX "^(CMAKE_|BUILD_|CPACK_|CTEST_|[A-Za-z0-9]+_FOUND$)")
  # What CMake's own modules and each project() set.
  list(FILTER ${prefix}_names EXCLUDE REGEX
    "^CMAKE_(CURRENT_|MATCH_|HAVE_|THREAD|USE_|FILES_DIR|PROJECT_VERSION|DISABLE_)")
  foreach(name IN LISTS ${prefix}_names)
    set(${prefix}_value_${name} "${${name}}")
  endforeach()
  foreach(name IN LISTS directory_properties)
    get_directory_property(${prefix}_property_${name} ${name})
  endforeach()
endmacro()

function(compare)
  foreach(name IN LISTS after_names)
    if(NOT name IN_LIST before_names)
      message(SEND_ERROR "leak: ${name} is new: ${after_value_${name}}")
    elseif(NOT "${before_value_${name}}" STREQUAL "${after_value_${name}}")
      message(SEND_ERROR "leak: ${name} was ${before_value_${name}}, is ${after_value_${name}}")
    endif()
  endforeach()
  foreach(name IN LISTS directory_properties)
    if(NOT "${before_property_${name}}" STREQUAL "${after_property_${name}}")
      message(SEND_ERROR "leak: ${name} of the folder is ${after_property_${name}}")
    endif()
  endforeach()
endfunction()
