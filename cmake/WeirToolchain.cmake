# Sets language level, warnings, hardening, sanitizers, linker and compiler cache for all targets of
# Weir. Nothing here reaches a project that embeds Weir: such a project chooses its warnings, build
# type and compiler cache itself.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_OPTIMIZE_DEPENDENCIES ON)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
endif()

string(REPLACE ";" "," weir_sanitize "${WEIR_SANITIZE}")

# Applies to all targets: precompiled headers need the same flags everywhere, as with -fPIE below.
add_compile_options(-pthread)
add_link_options(-pthread)

# --- Warnings -------------------------------------------------------------------------------------
if(PROJECT_IS_TOP_LEVEL OR WEIR_WERROR)
  add_compile_options(-Wall -Wextra -Wconversion -Wnon-virtual-dtor)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-Wshadow)
  endif()
endif()
set(CMAKE_COMPILE_WARNING_AS_ERROR OFF)  # a project's choice for its own sources
if(WEIR_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")  # for ccache
  add_link_options(-fuse-ld=lld)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 gives false warnings: -Wrestrict, -Warray-bounds and -Wstringop-* inside libstdc++'s
  # string (PR 105651, PR 105329), the next three after inlining coroutine frames, and -Wshadow in
  # gtest's macros. Clang reports the true faults.
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
                      -Wno-maybe-uninitialized -Wno-dangling-pointer -Wno-mismatched-new-delete)
  add_compile_definitions(WEIR_KNOWS_GCC_12)  # suppresses the note of weir/task/task.hpp
  add_compile_options(-fpch-preprocess)  # lets ccache read the tests' precompiled header
endif()

# --- Hardening ------------------------------------------------------------------------------------
# ./dev bench --hardening measures the cost. Families that a compiler or a processor lacks are left
# out. A family that is switched off keeps the compiler's default.
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)
set(weir_hardening_known assertions fortify stack-protector stack-clash control-flow pie)
string(REPLACE "," ";" weir_hardening "${WEIR_HARDEN}")
if(WEIR_HARDEN MATCHES "^(ON|TRUE|YES|1)$")
  set(weir_hardening ${weir_hardening_known})
elseif(NOT WEIR_HARDEN)
  set(weir_hardening "")
endif()
foreach(family IN LISTS weir_hardening)
  if(NOT family IN_LIST weir_hardening_known)
    message(FATAL_ERROR "WEIR_HARDEN: unknown family ${family}: expected ${weir_hardening_known}")
  endif()
endforeach()

# weir_harden(FAMILY FLAG): adds the flag if the family is on and the compiler supports the flag.
function(weir_harden family flag)
  if(NOT family IN_LIST weir_hardening)
    return()
  endif()
  string(MAKE_C_IDENTIFIER "WEIR_HAS${flag}" has)
  check_cxx_compiler_flag(${flag} ${has})
  if(${has})
    add_compile_options(${flag})
  endif()
endfunction()
# POSITION_INDEPENDENT_CODE gives libraries -fPIC and programs -fPIE, but the targets that share a
# precompiled header need the same flag. The last flag on a command line has effect, and these are
# the last ones. With -fPIC, a shared library can link Weir.
if(CMAKE_POSITION_INDEPENDENT_CODE)
  add_compile_options(-fPIC)
elseif("pie" IN_LIST weir_hardening)
  add_compile_options(-fPIE)
endif()
if("pie" IN_LIST weir_hardening)
  add_link_options(-pie -Wl,-z,relro,-z,now)
endif()
weir_harden(stack-protector -fstack-protector-strong)
weir_harden(stack-clash -fstack-clash-protection)
# x86-64: protects indirect branches and returns. A program is protected only if all of its objects
# are marked as compatible (`readelf -n`), and the C library and the kernel enable it. Weir's
# objects are marked, for systems on which all other objects are. Programs on Debian 12 are not
# protected: its start files (Scrt1.o, crti.o, crtn.o) lack the marks, and its C library is built
# without support. The linker options -z force-ibt and -z shstk would set the marks wrongly, so Weir
# does not use them.
weir_harden(control-flow -fcf-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  weir_harden(control-flow -mbranch-protection=standard)
endif()
if("assertions" IN_LIST weir_hardening)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()
if("fortify" IN_LIST weir_hardening AND NOT weir_sanitize)
  # Fortify needs optimisation, and would hide memory calls from the sanitizers. A C library without
  # level 3 warns.
  set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
  check_cxx_source_compiles("#include <features.h>\nint main() {}" WEIR_HAS_FORTIFY_3)
  unset(CMAKE_REQUIRED_FLAGS)
  if(WEIR_HAS_FORTIFY_3)
    set(weir_fortify_level 3)
  else()
    set(weir_fortify_level 2)
  endif()
  add_compile_options(
    $<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE>
    $<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=${weir_fortify_level}>)
endif()

# --- Frame pointers -------------------------------------------------------------------------------
# weir/profile and perf follow frame pointers. The sanitizers' options below have the flag too.
if(NOT weir_sanitize)
  add_compile_options(-fno-omit-frame-pointer)
endif()

# --- Sanitizers -----------------------------------------------------------------------------------
if(weir_sanitize)
  add_compile_options(-fsanitize=${weir_sanitize} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${weir_sanitize})
  if(weir_sanitize MATCHES "undefined")
    # vptr opens a pipe to check each object, and reports every object as invalid if descriptors
    # have run out, which tests provoke.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()
if(WEIR_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "WEIR_LIBFUZZER: needs clang, which contains libFuzzer")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# --- Compiler cache -------------------------------------------------------------------------------
if(PROJECT_IS_TOP_LEVEL)
  find_program(WEIR_CCACHE ccache)
endif()
if(PROJECT_IS_TOP_LEVEL AND WEIR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache's manual requires these sloppiness settings for precompiled headers. CCACHE_DEPEND makes
  # ccache compare the contents of all files that a compilation has read. Without it, ccache
  # compares preprocessed text, which has no comments. It then reuses a precompiled header after a
  # change of a comment, and GCC reads the changed file again, because its contents differ.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${WEIR_CCACHE})
endif()
