#include "weir/os/detail/process/symbol.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "weir/os/detail/process/elf_file.hpp"
#include "weir/os/detail/process/symbol_outline.hpp"

namespace weir::os {
namespace {

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
  if (status == 0 && text != nullptr) return text.get();
  std::string outline = outline_of_symbol(symbol);
  return outline.empty() ? symbol : outline;
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
    const std::uintptr_t in_file = elf.is_relocated() ? inside : number;
    const std::string symbol = elf.symbols_at(std::span(&in_file, 1)).front();
    if (!symbol.empty()) return readable_symbol(symbol);
  }
  return name_in_file(file.dli_fname, inside);
}

std::string name_in_file(std::string_view path, std::uintptr_t offset) {
  return std::string(path.substr(path.rfind('/') + 1)) + "+" + hexadecimal(offset);
}

}  // namespace weir::os
