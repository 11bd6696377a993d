// Reads the qualified name in a mangled symbol that the C++ library cannot read.
#pragma once

#include <string>
#include <string_view>

namespace weir::os {

/// Returns the qualified name in a mangled symbol of the Itanium C++ ABI, without parameters and
/// with "<...>" for template arguments: "weir::Scope::spawn<...>" for "_ZN4weir5Scope5spawnITk...".
/// It serves for symbols of compilers that are newer than the C++ library: the library cannot read
/// constraints of templates. The name ends where the symbol has something that this function does
/// not know. Empty if it finds no name.
std::string outline_of_symbol(std::string_view symbol);

}  // namespace weir::os
