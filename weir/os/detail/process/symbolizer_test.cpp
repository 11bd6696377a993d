// Tests of naming many addresses, with damaged files.
#include "weir/os/detail/process/symbolizer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "weir/os/detail/process/elf_file.hpp"

namespace weir::os {
namespace {

[[gnu::noinline]] int tripled(int number) {
  return 3 * number;
}
[[gnu::noinline]] int halved(int number) {
  return number / 2;
}

std::uintptr_t address_of(int (*function)(int)) {
  return reinterpret_cast<std::uintptr_t>(function);
}

TEST(Symbolizer, NamesManyAddressesInTheirOrder) {
  const std::vector<std::uintptr_t> addresses{address_of(&halved) + 1, 0x1f40, address_of(&tripled),
                                              reinterpret_cast<std::uintptr_t>(&::getppid),
                                              address_of(&halved)};
  const Symbols symbols = symbolize(addresses);
  ASSERT_EQ(symbols.names.size(), addresses.size());
  EXPECT_EQ(symbols.names[0].function, "weir::os::(anonymous namespace)::halved");
  EXPECT_EQ(symbols.names[1].function, "unknown+0x1f40");
  EXPECT_EQ(symbols.names[1].code, AddressName::no_code);
  EXPECT_EQ(symbols.names[2].function, "weir::os::(anonymous namespace)::tripled");
  EXPECT_TRUE(symbols.names[2].symbol.starts_with("_Z")) << symbols.names[2].symbol;
  EXPECT_TRUE(symbols.names[3].function.ends_with("getppid")) << symbols.names[3].function;
  EXPECT_EQ(symbols.names[4].function, symbols.names[0].function);
}

TEST(Symbolizer, KnowsTheFileOfEachAddress) {
  const std::uintptr_t address = address_of(&halved);
  const Symbols symbols = symbolize({&address, 1});
  ASSERT_NE(symbols.names[0].code, AddressName::no_code);
  const LoadedCode& code = symbols.code[symbols.names[0].code];
  EXPECT_EQ(code.path, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_LE(code.begin, address);
  EXPECT_GT(code.end, address);
  for (std::size_t index = 1; index < symbols.code.size(); ++index)
    EXPECT_LE(symbols.code[index - 1].end, symbols.code[index].begin);
}

TEST(Symbolizer, ReadsTheBuildIdOfALibrary) {
  const auto address = reinterpret_cast<std::uintptr_t>(&::getppid);
  const Symbols symbols = symbolize({&address, 1});
  ASSERT_NE(symbols.names[0].code, AddressName::no_code);
  const std::string& id = symbols.code[symbols.names[0].code].build_id;
  EXPECT_EQ(id.size() % 2, 0u);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), id.npos) << id;
}

/// Returns the contents of the smallest library of this process.
std::string smallest_library() {
  std::string smallest;
  for (const LoadedCode& code : symbolize({}).code) {
    if (!std::filesystem::exists(code.path)) continue;
    std::ifstream in(code.path, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    if (smallest.empty() || bytes.size() < smallest.size()) smallest = std::move(bytes);
  }
  return smallest;
}

/// Writes a copy of a library, after `change` has changed its bytes.
template <class Change>
std::string changed_library(Change change) {
  static const std::string library = smallest_library();
  std::string bytes = library;
  change(bytes);
  const std::string path = testing::TempDir() + "weir_elf_" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(ElfFile, FindsNothingInDamagedFiles) {
  std::mt19937 random(static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed()));
  const std::vector<std::uintptr_t> addresses{0, 0x1000, 0x2000, ~std::uintptr_t{0}};
  for (int round = 0; round < 20; ++round) {
    const std::string path = changed_library([&](std::string& bytes) {
      ElfW(Ehdr) header;
      std::memcpy(&header, bytes.data(), sizeof header);
      const std::size_t sections = header.e_shnum * sizeof(ElfW(Shdr));
      for (int change = 0; change < 400; ++change) {
        const bool in_header = random() % 8 == 0;
        const std::size_t at =
            in_header ? 16 + random() % (sizeof header - 16) : header.e_shoff + random() % sections;
        bytes[at] = static_cast<char>(random());
      }
      if (round % 3 == 0) bytes.resize(bytes.size() - random() % (sections + 1));
    });
    ElfFile file(path.c_str());
    if (file.open()) {
      const auto found = file.symbols_at(addresses);
      EXPECT_EQ(found.size(), addresses.size());
    }
    std::filesystem::remove(path);
  }
}

TEST(ElfFile, RejectsWhatIsNoElfFile) {
  EXPECT_FALSE(ElfFile("/proc/self/status").open());
  EXPECT_FALSE(ElfFile("/").open());
  EXPECT_FALSE(ElfFile("/no/such/file").open());
}

}  // namespace
}  // namespace weir::os
