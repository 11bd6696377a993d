// What pool_lab is told, what it does in its pool, and what it reports of that.
#pragma once

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

/// An operation that has ended.
struct Ended {
  std::int64_t arrived_ns;  ///< when its request came, on the monotonic clock
  std::int64_t took_ns;     ///< from then to its end
};

/// Of very many only the first are kept.
inline void note(std::vector<Ended>& all, const Ended& each) {
  if (all.size() < 100'000) all.push_back(each);
}

inline std::vector<Ended> ended_from(std::span<const Ended> all, std::size_t from) {
  const auto later_ones = all.subspan(std::min(from, all.size()));
  return {later_ones.begin(), later_ones.end()};
}

struct Report {
  std::size_t size;
  std::size_t running;
  std::size_t queued;
  std::string_view reason;   ///< why the size is what it is
  std::uint64_t refused;     ///< operations, because too many waited already
  std::vector<Ended> ended;  ///< in the order in which they have
};

/// What keeps a processor busy for as long as `iterations` take, or else a thread for 50 ms.
inline void work(bool computes, int iterations) {
  if (!computes) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return;
  }
  std::array<unsigned char, 512> key;
  PKCS5_PBKDF2_HMAC("", 0, nullptr, 0, iterations, EVP_sha512(), key.size(), key.data());
}

/// Takes `--pool N` from the front of the command line; 0, which is automatic, for anything else.
inline std::size_t take_pool_size(int& argc, char**& argv) {
  if (argc < 3 || std::string_view(argv[1]) != "--pool") return 0;
  const std::size_t size = std::strtoul(argv[2], nullptr, 10);
  argv[2] = argv[0];
  argc -= 2;
  argv += 2;
  return size;
}
