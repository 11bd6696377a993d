#include "weir/os/detail/process/symbol.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "weir/os/detail/io/fd.hpp"

namespace weir::os {
namespace {

using FileHeader = ElfW(Ehdr);
using SectionHeader = ElfW(Shdr);
using Symbol = ElfW(Sym);
using Word = ElfW(Word);

/// An ElfFile reads an ELF file and checks every offset and size before it uses them.
class ElfFile {
 public:
  explicit ElfFile(const char* path) noexcept : file_(::open(path, O_RDONLY | O_CLOEXEC)) {}

  /// Returns true if the file can be read and is an ELF file of this machine's word size.
  bool open() {
    if (!file_ || !read(0, header_)) return false;
    return std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
           header_.e_ident[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           header_.e_shentsize == sizeof(SectionHeader);
  }
  /// Returns true if the addresses in the file are relative to its load address.
  bool is_relocated() const noexcept { return header_.e_type == ET_DYN; }

  /// Returns the symbol of the function that contains `address`, from the most complete table.
  std::optional<std::string> symbol_at(std::uintptr_t address) {
    for (const Word kind : {Word{SHT_SYMTAB}, Word{SHT_DYNSYM}}) {
      const auto table =
          section([kind](const SectionHeader& each) { return each.sh_type == kind; });
      if (!table) continue;
      const auto found = find(*table, address);
      const auto names = section_at(table->sh_link);
      if (found && names && found->st_name < names->sh_size) {
        return read_name(names->sh_offset + found->st_name);
      }
    }
    return std::nullopt;
  }

 private:
  template <class T>
  bool read(std::uint64_t offset, T& into) const {
    return read_some(offset, std::as_writable_bytes(std::span(&into, 1))) == sizeof(T);
  }
  /// Returns the number of bytes read. It is less than requested at the end of the file and after
  /// an error.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> into) const {
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

  std::optional<SectionHeader> section_at(std::size_t index) const {
    SectionHeader section;
    if (index >= header_.e_shnum) return std::nullopt;
    if (!read(header_.e_shoff + index * sizeof section, section)) return std::nullopt;
    return section;
  }
  template <class Is>
  std::optional<SectionHeader> section(Is is) const {
    for (std::size_t index = 0; index < header_.e_shnum; ++index) {
      const auto each = section_at(index);
      if (each && is(*each)) return each;
    }
    return std::nullopt;
  }

  std::optional<Symbol> find(const SectionHeader& table, std::uintptr_t address) const {
    constexpr std::size_t at_once = 512;
    std::array<Symbol, at_once> some;
    std::uint64_t offset = table.sh_offset;
    std::uint64_t left = table.sh_size / sizeof(Symbol);
    while (left > 0) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, at_once));
      const std::size_t bytes = wanted * sizeof(Symbol);
      if (read_some(offset, std::as_writable_bytes(std::span(some)).first(bytes)) != bytes) break;
      const auto end = some.begin() + static_cast<std::ptrdiff_t>(wanted);
      const auto found = std::find_if(some.begin(), end, [address](const Symbol& each) {
        return ELF64_ST_TYPE(each.st_info) == STT_FUNC && each.st_shndx != SHN_UNDEF &&
               address >= each.st_value && address - each.st_value < each.st_size;
      });
      if (found != end) return *found;
      offset += bytes;
      left -= wanted;
    }
    return std::nullopt;
  }

  std::string read_name(std::uint64_t offset) const {
    std::string name(4096, '\0');  // templates have long names; longer ones are cut
    name.resize(read_some(offset, std::as_writable_bytes(std::span(name))));
    return name.substr(0, name.find('\0'));
  }

  Fd file_;
  FileHeader header_{};
};

std::string hexadecimal(std::uintptr_t number) {
  std::array<char, 2 * sizeof number> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return "0x" + std::string(digits.data(), end.ptr);
}

bool is_the_program(const Dl_info& file) {
  // The loader stores the name with which the program was started, which need not be a path.
  Dl_info program{};
  return ::dladdr(reinterpret_cast<const void*>(&function_name_at), &program) != 0 &&
         program.dli_fbase == file.dli_fbase;
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : symbol;
}

}  // namespace

std::string readable_symbol(const std::string& symbol) {
  std::string name = demangled(symbol);
  // Examples are "f(int) [clone .resume]" and "f(f(int)::_Z1fi.Frame*) [clone .actor]", or
  // "f.resume" for a symbol that is not mangled.
  if (const auto clone = name.find(" [clone "); clone != name.npos) name.resize(clone);
  constexpr std::string_view abi_tag = "[abi:cxx11]";  // of functions that return a std::string
  for (auto at = name.find(abi_tag); at != name.npos; at = name.find(abi_tag)) {
    name.erase(at, abi_tag.size());
  }
  for (const std::string_view part : {".resume", ".actor"}) {
    if (name.ends_with(part)) name.resize(name.size() - part.size());
  }
  if (name.ends_with(" const")) name.resize(name.size() - std::string_view(" const").size());
  if (!name.ends_with(')')) return name;
  std::size_t depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) {
      if (at > 0) name.resize(at);
      break;
    }
  }
  return name;
}

std::string function_name_at(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  Dl_info file{};
  if (::dladdr(address, &file) == 0 || file.dli_fname == nullptr) return hexadecimal(number);
  const char* const path = is_the_program(file) ? "/proc/self/exe" : file.dli_fname;
  const std::uintptr_t inside = number - reinterpret_cast<std::uintptr_t>(file.dli_fbase);
  ElfFile elf(path);
  if (elf.open()) {
    const auto symbol = elf.symbol_at(elf.is_relocated() ? inside : number);
    if (symbol && !symbol->empty()) return readable_symbol(*symbol);
  }
  const std::string_view whole(file.dli_fname);
  return std::string(whole.substr(whole.rfind('/') + 1)) + "+" + hexadecimal(inside);
}

}  // namespace weir::os
