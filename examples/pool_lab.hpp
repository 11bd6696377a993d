// The options, the work and the report of pool_lab.
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

struct CompletedOperation {
  std::int64_t arrived_ns;  ///< time of its request, on the monotonic clock
  std::int64_t took_ns;     ///< duration from the request to its end
};

/// Appends `each`. Keeps only the first 100,000 operations.
inline void record(std::vector<CompletedOperation>& all, const CompletedOperation& each) {
  if (all.size() < 100'000) all.push_back(each);
}

inline std::vector<CompletedOperation> completed_from(std::span<const CompletedOperation> all,
                                                      std::size_t from) {
  const auto later = all.subspan(std::min(from, all.size()));
  return {later.begin(), later.end()};
}

struct Report {
  std::size_t size;
  std::size_t running;
  std::size_t queued;
  std::string_view reason;                ///< reason of the last change of the size
  std::uint64_t refused;                  ///< operations rejected because the queue was full
  std::vector<CompletedOperation> ended;  ///< in the order of their completion
};

/// Keeps a processor busy for `iterations` rounds if `computes`; otherwise blocks for 50 ms.
inline void work(bool computes, int iterations) {
  if (!computes) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return;
  }
  std::array<unsigned char, 512> key;
  PKCS5_PBKDF2_HMAC("", 0, nullptr, 0, iterations, EVP_sha512(), key.size(), key.data());
}

/// Removes `--pool N` from the command line. Returns N, or 0 (automatic) without that option.
inline std::size_t take_pool_size(int& argc, char**& argv) {
  if (argc < 3 || std::string_view(argv[1]) != "--pool") return 0;
  const std::size_t size = std::strtoul(argv[2], nullptr, 10);
  argv[2] = argv[0];
  argc -= 2;
  argv += 2;
  return size;
}
