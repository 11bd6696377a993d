// Names of this process's functions, found in the symbol tables of its files when they are needed.
#pragma once

#include <string>
#include <string_view>

namespace weir::os {

/// What the function at `address`, or around it, is called, without its parameters:
/// "serve_client", "main::{lambda(int)#1}::operator()". Where the file that it is in has been
/// stripped of names, the file and where in it: "service+0x1f40", as addr2line(1) takes it; for
/// what is no code of this process, the number. Also functions that no other file can see have
/// names, for the file's own symbol table is read: that takes milliseconds in a large program.
/// Blocks as long as reading does. Any thread. Errors: none, an address is always a name.
std::string function_at(const void* address);

/// A symbol as people write it: demangled, without parameters and without what compilers add to the
/// parts into which they cut coroutines.
std::string readable_symbol(const std::string& symbol);

}  // namespace weir::os
