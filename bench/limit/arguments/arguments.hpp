// The arguments of the limit servers and of the load generators. CLI11 is behind a source: with
// optimisation, its headers cost each program that includes them 7 s of compile time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace limit {

/// An argument of a program. One whose name begins without `--` is known by its position.
struct Argument {
  using Value = std::variant<bool*, int*, std::uint16_t*, std::size_t*, double*, std::string*>;

  const char* name = nullptr;
  Value value;  ///< keeps what it points to if the argument is missing
  const char* help = nullptr;
  bool required = false;
  std::size_t least = 0;  ///< smallest and largest number
  std::size_t most = std::numeric_limits<std::size_t>::max();
};

/// Reads the arguments. Prints what is wrong, or the help, and exits if the program must not run.
void read_arguments(int argc, char** argv, const char* purpose,
                    const std::vector<Argument>& arguments);

}  // namespace limit
