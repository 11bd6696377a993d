// Names of this process's functions, read from the symbol tables of its files on demand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::os {

/// Returns the name of the function that contains `address`, without its parameters, such as
/// "serve_client" or "main::{lambda(int)#1}::operator()". The result is the file and the offset if
/// the file has no symbol for the address, such as "service+0x1f40". This is the input format of
/// addr2line(1). The result is the address in hex if no file of this process contains it.
///
/// The call reads the symbol table of the file, so that functions with internal linkage have names
/// too. It takes milliseconds in a large program and blocks as long as the read does. It does not
/// fail.
/// Threads: any.
std::string function_name_at(const void* address);

/// Returns a demangled symbol without parameters and without the suffixes that compilers add to the
/// parts of a coroutine.
std::string readable_symbol(const std::string& symbol);

/// Returns the name of a place in a file without symbols: "service+0x1f40".
std::string name_in_file(std::string_view path, std::uintptr_t offset);

}  // namespace weir::os
