#include "weir/os/detail/process/elf_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace weir::os {
namespace {

constexpr std::uint64_t no_name = 0;  // the first name of a table is empty

bool is_function(const ElfW(Sym) & symbol) noexcept {
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF;
}

}  // namespace

ElfFile::ElfFile(const char* path) noexcept : file_(::open(path, O_RDONLY | O_CLOEXEC)) {}

bool ElfFile::open() {
  if (!file_ || !read(0, header_)) return false;
  return std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
         header_.e_ident[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) &&
         header_.e_shentsize == sizeof(SectionHeader);
}

std::vector<std::string> ElfFile::symbols_at(std::span<const std::uintptr_t> addresses) const {
  std::vector<std::string> found(addresses.size());
  for (const Word type : {Word{SHT_SYMTAB}, Word{SHT_DYNSYM}}) {
    if (const auto table = section_of_type(type)) find(*table, addresses, found);
  }
  return found;
}

template <class T>
bool ElfFile::read(std::uint64_t offset, T& into) const {
  return read_some(offset, std::as_writable_bytes(std::span(&into, 1))) == sizeof(T);
}

/// Returns the number of bytes read. It is less than requested at the end of the file and after an
/// error.
std::size_t ElfFile::read_some(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t count = ::pread(file_.get(), into.data() + done, into.size() - done,
                                  static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

std::optional<ElfFile::SectionHeader> ElfFile::section_at(std::size_t index) const {
  SectionHeader section;
  if (index >= header_.e_shnum) return std::nullopt;
  if (!read(header_.e_shoff + index * sizeof section, section)) return std::nullopt;
  return section;
}

std::optional<ElfFile::SectionHeader> ElfFile::section_of_type(Word type) const {
  for (std::size_t index = 0; index < header_.e_shnum; ++index) {
    const auto each = section_at(index);
    if (each && each->sh_type == type) return each;
  }
  return std::nullopt;
}

/// Stores in `found` the names of the functions of one table, for addresses that have no name yet.
void ElfFile::find(const SectionHeader& table, std::span<const std::uintptr_t> addresses,
                   std::vector<std::string>& found) const {
  const auto names = section_at(table.sh_link);
  if (!names) return;
  constexpr std::size_t at_once = 512;
  std::array<Symbol, at_once> some;
  std::vector<std::uint64_t> name_offsets(addresses.size(), no_name);
  std::uint64_t offset = table.sh_offset;
  std::uint64_t left = std::min(table.sh_size / sizeof(Symbol), symbols_max);
  while (left > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, at_once));
    const std::size_t bytes = wanted * sizeof(Symbol);
    if (read_some(offset, std::as_writable_bytes(std::span(some)).first(bytes)) != bytes) break;
    for (const Symbol& symbol : std::span(some).first(wanted)) {
      if (!is_function(symbol) || symbol.st_name >= names->sh_size) continue;
      const auto first = std::ranges::lower_bound(addresses, std::uintptr_t{symbol.st_value});
      auto index = static_cast<std::size_t>(first - addresses.begin());
      for (; index < addresses.size() && addresses[index] - symbol.st_value < symbol.st_size;
           ++index) {
        if (name_offsets[index] == no_name) name_offsets[index] = symbol.st_name;
      }
    }
    offset += bytes;
    left -= wanted;
  }
  for (std::size_t index = 0; index < addresses.size(); ++index) {
    if (!found[index].empty() || name_offsets[index] == no_name) continue;
    found[index] = read_name(names->sh_offset + name_offsets[index]);
  }
}

std::string ElfFile::read_name(std::uint64_t offset) const {
  std::string name(4096, '\0');  // templates have long names; longer ones are cut
  name.resize(read_some(offset, std::as_writable_bytes(std::span(name))));
  return name.substr(0, name.find('\0'));
}

}  // namespace weir::os
