// RAND_set_rand_method() is deprecated in favour of a provider. It is the only way that reaches all
// library contexts of a process after their first use.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "weir/tls/crypto/detail/random.hpp"

#include <openssl/err.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "weir/base/detail/random_source.hpp"
#include "weir/tls/crypto/detail/library_context.hpp"

namespace weir::tls::detail {
namespace {

/// Fills `bytes`. Threads without a simulation use OpenSSL's generator.
int fill(unsigned char* bytes, int size) {
  weir::detail::RandomSource* const source = weir::detail::RandomSource::current();
  if (source == nullptr) return RAND_OpenSSL()->bytes(bytes, size);
  auto left = static_cast<std::size_t>(size);
  while (left > 0) {
    const std::uint64_t number = source->random();
    const std::size_t count = std::min(left, sizeof number);
    std::memcpy(bytes, &number, count);
    bytes += count;
    left -= count;
  }
  return 1;
}

}  // namespace

bool fill_random(MutableBytes target) noexcept {
  use_simulated_random();
  if (openssl_has_ended()) return false;
  constexpr unsigned strength = 0;  // that of the generator
  const bool filled =
      RAND_bytes_ex(library_context(), reinterpret_cast<unsigned char*>(target.data()),
                    target.size(), strength) == 1;
  if (!filled) ERR_clear_error();
  return filled;
}

void use_simulated_random() noexcept {
  if (!in_simulation()) return;
  static constexpr RAND_METHOD method{.seed = nullptr,
                                      .bytes = &fill,
                                      .cleanup = nullptr,
                                      .add = nullptr,
                                      .pseudorand = &fill,
                                      .status = [] { return 1; }};
  static const int set = RAND_set_rand_method(&method);  // once in a process
  static_cast<void>(set);
}

bool in_simulation() noexcept {
  return weir::detail::RandomSource::current() != nullptr;
}

}  // namespace weir::tls::detail
