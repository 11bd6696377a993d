#include "weir/os/detail/process/symbolizer.hpp"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <map>
#include <string_view>

#include "weir/os/detail/process/elf_file.hpp"
#include "weir/os/detail/process/symbol.hpp"

namespace weir::os {
namespace {

constexpr char program_file[] = "/proc/self/exe";  // exists even if the program was replaced

std::string program_path() {
  std::array<char, 4096> path;
  const ssize_t size = ::readlink(program_file, path.data(), path.size());
  return size <= 0 ? program_file : std::string(path.data(), static_cast<std::size_t>(size));
}

std::string hexadecimal(std::span<const unsigned char> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char each : bytes) {
    text += digits[each >> 4];
    text += digits[each & 15];
  }
  return text;
}

/// Returns the build id in a segment of notes (elf(5)); empty if there is none.
std::string build_id_in(std::span<const unsigned char> notes) {
  using Header = ElfW(Nhdr);
  constexpr auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
  while (notes.size() >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, notes.data(), sizeof header);
    const auto rest = notes.subspan(sizeof header);
    const std::size_t name_size = padded(header.n_namesz);
    if (name_size > rest.size() || header.n_descsz > rest.size() - name_size) break;
    const bool is_gnu = header.n_namesz == 4 && std::memcmp(rest.data(), "GNU", 4) == 0;
    if (is_gnu && header.n_type == NT_GNU_BUILD_ID)
      return hexadecimal(rest.subspan(name_size, header.n_descsz));
    notes = rest.subspan(std::min(rest.size(), name_size + padded(header.n_descsz)));
  }
  return {};
}

/// The code of this process, in the order in which the loader lists it.
struct CodeList {
  std::vector<LoadedCode> code;
  std::exception_ptr error;
};

void add_code_of(const dl_phdr_info& file, CodeList& list) {
  const std::string_view name = file.dlpi_name == nullptr ? "" : file.dlpi_name;
  LoadedCode code;
  if (name.empty()) {
    code.path = program_path();
  } else {
    code.path = name.starts_with("linux-vdso") ? "[vdso]" : std::string(name);
  }
  code.load_bias = file.dlpi_addr;
  const std::span headers(file.dlpi_phdr, file.dlpi_phnum);
  for (const auto& each : headers) {
    if (each.p_type != PT_NOTE || !code.build_id.empty()) continue;
    const auto* const notes = reinterpret_cast<const unsigned char*>(file.dlpi_addr + each.p_vaddr);
    code.build_id = build_id_in({notes, each.p_memsz});
  }
  for (const auto& each : headers) {
    if (each.p_type != PT_LOAD || (each.p_flags & PF_X) == 0) continue;
    code.begin = file.dlpi_addr + each.p_vaddr;
    code.end = code.begin + each.p_memsz;
    code.file_offset = each.p_offset;
    list.code.push_back(code);
  }
}

std::vector<LoadedCode> loaded_code() {
  CodeList list;
  ::dl_iterate_phdr(
      [](dl_phdr_info* file, std::size_t, void* data) {
        auto& into = *static_cast<CodeList*>(data);
        try {
          add_code_of(*file, into);
          return 0;
        } catch (...) {
          into.error = std::current_exception();  // it must not pass through the C library
          return 1;
        }
      },
      &list);
  if (list.error != nullptr) std::rethrow_exception(list.error);
  std::ranges::sort(list.code, {}, &LoadedCode::begin);
  return std::move(list.code);
}

std::size_t index_of_code(std::span<const LoadedCode> code, std::uintptr_t address) {
  const auto after = std::ranges::upper_bound(code, address, {}, &LoadedCode::begin);
  if (after == code.begin() || address >= std::prev(after)->end) return AddressName::no_code;
  return static_cast<std::size_t>(after - code.begin()) - 1;
}

/// The addresses in one file, and their indexes in the order of the caller.
struct FileAddresses {
  const LoadedCode* code = nullptr;
  std::vector<std::pair<std::uintptr_t, std::size_t>> wanted;
};

void name_addresses(FileAddresses& file, Symbols& symbols) {
  std::ranges::sort(file.wanted);
  std::vector<std::uintptr_t> addresses;
  for (const auto& each : file.wanted) addresses.push_back(each.first);
  std::vector<std::string> found(addresses.size());
  const bool is_program = file.code->path == program_path();
  ElfFile elf(is_program ? program_file : file.code->path.c_str());
  if (elf.open()) found = elf.symbols_at(addresses);
  for (std::size_t index = 0; index < found.size(); ++index) {
    AddressName& name = symbols.names[file.wanted[index].second];
    name.symbol = std::move(found[index]);
    name.function = name.symbol.empty() ? name_in_file(file.code->path, addresses[index])
                                        : readable_symbol(name.symbol);
  }
}

}  // namespace

Symbols symbolize(std::span<const std::uintptr_t> addresses) {
  Symbols symbols{loaded_code(), std::vector<AddressName>(addresses.size())};
  std::map<std::string_view, FileAddresses> files;
  for (std::size_t index = 0; index < addresses.size(); ++index) {
    AddressName& name = symbols.names[index];
    name.code = index_of_code(symbols.code, addresses[index]);
    if (name.code == AddressName::no_code) {
      name.function = name_in_file("unknown", addresses[index]);
      continue;
    }
    const LoadedCode& code = symbols.code[name.code];
    FileAddresses& file = files[code.path];
    file.code = &code;
    file.wanted.emplace_back(addresses[index] - code.load_bias, index);
  }
  for (auto& [path, file] : files) name_addresses(file, symbols);
  return symbols;
}

}  // namespace weir::os
