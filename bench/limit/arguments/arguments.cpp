#include "bench/limit/arguments/arguments.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <type_traits>

namespace limit {
namespace {

CLI::Option* add(CLI::App& parser, const Argument& argument) {
  const auto add_value = [&]<class Value>(Value* value) -> CLI::Option* {
    if constexpr (std::is_same_v<Value, bool>) {
      return parser.add_flag(argument.name, *value, argument.help);
    } else {
      CLI::Option* const option = parser.add_option(argument.name, *value, argument.help);
      if constexpr (std::is_integral_v<Value>) {
        if (argument.min != Argument().min || argument.max != Argument().max) {
          option->check(CLI::Range(argument.min, argument.max));
        }
      }
      return option->capture_default_str();
    }
  };
  return std::visit(add_value, argument.value);
}

}  // namespace

void read_arguments(int argc, char** argv, const char* purpose,
                    const std::vector<Argument>& arguments) {
  CLI::App parser(purpose);
  for (const Argument& each : arguments) add(parser, each)->required(each.required);
  try {
    parser.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(parser.exit(error));
  }
}

}  // namespace limit
