#include "weir/testing/world_trace.hpp"

#include <cstdint>

namespace weir {

void WorldTrace::note(std::string_view what) {
  if (!on_) return;
  constexpr std::int64_t second = 1'000'000'000;
  constexpr std::size_t digits = 9;
  const std::int64_t passed = (clock_.now() - start_).count();
  const std::string fraction = std::to_string(passed % second);
  text_ += std::to_string(passed / second);
  text_ += '.';
  text_.append(digits - fraction.size(), '0');
  text_ += fraction;
  text_ += ' ';
  text_ += place_;
  text_ += ' ';
  text_ += what;
  text_ += '\n';
}

}  // namespace weir
