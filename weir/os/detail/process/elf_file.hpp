// Reads the symbol tables of ELF files, which may be damaged.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weir/os/detail/io/fd.hpp"

namespace weir::os {

/// An ElfFile reads an ELF file and checks every offset and size before it uses them.
/// Threads: one at a time.
class ElfFile {
 public:
  /// The number of symbols that are read of one table.
  static constexpr std::uint64_t symbols_max = 4'000'000;

  explicit ElfFile(const char* path) noexcept;

  /// Returns true if the file can be read and is an ELF file of this machine's word size.
  bool open();
  /// Returns true if the addresses in the file are relative to its load address.
  bool is_relocated() const noexcept { return header_.e_type == ET_DYN; }

  /// Returns the symbols of the functions that contain the `addresses`, which are sorted. They come
  /// from the most complete table that has them, and have at most 4,095 bytes. An address without a
  /// symbol gets an empty text.
  std::vector<std::string> symbols_at(std::span<const std::uintptr_t> addresses) const;

 private:
  using SectionHeader = ElfW(Shdr);
  using Symbol = ElfW(Sym);
  using Word = ElfW(Word);

  template <class T>
  bool read(std::uint64_t offset, T& into) const;
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> into) const;
  std::optional<SectionHeader> section_at(std::size_t index) const;
  std::optional<SectionHeader> section_of_type(Word type) const;
  void find(const SectionHeader& table, std::span<const std::uintptr_t> addresses,
            std::vector<std::string>& found) const;
  std::string read_name(std::uint64_t offset) const;

  Fd file_;
  ElfW(Ehdr) header_ {};
};

}  // namespace weir::os
