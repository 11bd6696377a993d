// Names of many addresses of this process, and the files that contain them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::os {

/// A part of a file that is mapped into this process as code.
struct LoadedCode {
  std::string path;               ///< of the program or of a library; "[vdso]" has no file
  std::uintptr_t begin = 0;       ///< first address
  std::uintptr_t end = 0;         ///< address behind the last one
  std::uint64_t file_offset = 0;  ///< place of `begin` in the file
  std::uintptr_t load_bias = 0;   ///< difference between the addresses here and in the file
  std::string build_id = {};      ///< in hexadecimal digits; empty if the file has none
};

/// The function that contains an address.
struct AddressName {
  static constexpr std::size_t no_code = ~std::size_t{0};

  std::string function;        ///< demangled, without parameters; else "service+0x1f40"
  std::string symbol = {};     ///< as in the file; empty if the file has no symbol there
  std::size_t code = no_code;  ///< index in Symbols::code
};

/// The result of symbolize().
struct Symbols {
  std::vector<LoadedCode> code;    ///< by address, without overlaps
  std::vector<AddressName> names;  ///< in the order of the addresses
};

/// Finds the functions that contain the `addresses`. It reads the symbol table of each file once.
/// It takes tens of milliseconds in a large program and blocks as long as the reads do, so a loop
/// must not call it. Files that cannot be read, or are damaged, give no names.
/// Errors: throws std::bad_alloc.
/// Threads: any.
Symbols symbolize(std::span<const std::uintptr_t> addresses);

}  // namespace weir::os
