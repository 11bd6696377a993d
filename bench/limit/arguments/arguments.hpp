// The arguments of the limit servers and of the load generators. Only arguments.cpp includes CLI11.
// With optimisation, CLI11 costs 7 s in each source that includes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace limit {

/// An argument of a program. A name without `--` is positional.
struct Argument {
  using Value = std::variant<bool*, int*, std::uint16_t*, std::size_t*, double*, std::string*>;

  const char* name = nullptr;
  Value value;  ///< keeps what it points to if the argument is missing
  const char* help = nullptr;
  bool required = false;
  std::size_t min = 0;  ///< of a number
  std::size_t max = std::numeric_limits<std::size_t>::max();
};

/// Reads the arguments. Prints what is wrong, or the help, and exits if the program must not run.
void read_arguments(int argc, char** argv, const char* purpose,
                    const std::vector<Argument>& arguments);

}  // namespace limit
