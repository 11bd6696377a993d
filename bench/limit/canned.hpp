// The common parts of the limit servers: options, the canned response and the count of requests.
//
// A limit server measures the limit of this machine and kernel, without parsing. A request ends at
// "\r\n\r\n" or after a fixed number of bytes. The server answers every request with the same
// bytes, and all requests that arrive together with one send. It has one thread and one loop.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/limit/arguments/arguments.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/detail/machine/limits.hpp"

namespace limit {

struct Options {
  std::uint16_t port = 0;            ///< port on 127.0.0.1; 0: the kernel chooses it
  int cpu = -1;                      ///< CPU to pin the thread to; -1: any CPU
  std::size_t response_bytes = 128;  ///< size of a response, head included
  std::size_t request_bytes = 0;     ///< size of a request, head included; 0: ends at "\r\n\r\n"
  bool close = false;                ///< true if each connection ends after its first response
  bool share_port = false;           ///< true if each thread has a listener of the same port
};

/// Prints the failed operation and the error, and exits.
[[noreturn]] inline void exit_with_error(const char* what, int error = errno) {
  std::fprintf(stderr, "limit: %s: %s\n", what, std::strerror(error));
  std::exit(1);
}

/// Reads the arguments of a limit server, and those of `more`; see read_arguments().
inline Options parse_options(int argc, char** argv, const std::vector<Argument>& more = {}) {
  Options options;
  std::vector<Argument> arguments{
      {.name = "--port", .value = &options.port, .help = "port on 127.0.0.1; 0: any free port"},
      {.name = "--cpu", .value = &options.cpu, .help = "CPU to run on"},
      {.name = "--response-bytes",
       .value = &options.response_bytes,
       .help = "bytes of a response, head included",
       .min = 96,
       .max = 2 << 20},
      {.name = "--request-bytes",
       .value = &options.request_bytes,
       .help = "bytes of a request (0: up to an empty line)"},
      {.name = "--close",
       .value = &options.close,
       .help = "end each connection after its first response"}};
  arguments.insert(arguments.end(), more.begin(), more.end());
  read_arguments(argc, argv, "A server that answers without parsing: the limit of this machine",
                 arguments);
  return options;
}

/// Pins the thread to the CPU of the options and returns a listening socket. Prints the port.
/// SIGTERM ends the process.
inline weir::os::Fd start_listening(const Options& options) {
  if (options.cpu >= 0) {
    const auto pinned = weir::os::pin_current_thread(options.cpu);
    if (!pinned) exit_with_error("pinning", pinned.error().value());
  }
  weir::os::raise_descriptor_limit();
  const auto address = weir::os::Address::loopback(options.port);
  auto listener =
      weir::os::open_listener(address, {.backlog = 65535, .reuse_port = options.share_port});
  if (!listener) exit_with_error("listening", listener.error().value());
  const auto no_delay =
      weir::os::set_no_delay(listener->get(), true);  // accepted sockets inherit it
  if (!no_delay) exit_with_error("TCP_NODELAY", no_delay.error().value());
  const auto bound = weir::os::local_address(listener->get());
  if (!bound) exit_with_error("the address", bound.error().value());
  std::fprintf(stderr, "limit: listening on %s\n", bound->to_string().c_str());
  return std::move(*listener);
}

/// Copies of one response, for sends of several responses.
class CannedResponses {
 public:
  explicit CannedResponses(const Options& options) : size_(options.response_bytes) {
    std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
    if (options.close) head += "Connection: close\r\n";
    head += "Content-Length: ";
    // The digits of the length count, too.
    std::size_t body = size_ - head.size() - 4 - 1;
    while (head.size() + std::to_string(body).size() + 4 + body > size_) --body;
    head += std::to_string(body) + "\r\n\r\n";
    const std::string one = head + std::string(size_ - head.size(), 'x');
    const std::size_t count = std::max<std::size_t>(1, bytes_max / size_);
    copies_.reserve(count * size_);
    for (std::size_t made = 0; made < count; ++made) copies_ += one;
  }

  /// The size of one response in bytes.
  std::size_t size() const noexcept { return size_; }
  /// Returns the next bytes to send when `owed` bytes are unsent. The previous send ended `owed`
  /// bytes before the end of a response.
  std::string_view next(std::size_t owed) const noexcept {
    const std::size_t begin = (size_ - owed % size_) % size_;
    return std::string_view(copies_).substr(begin, std::min(owed, copies_.size() - begin));
  }

 private:
  static constexpr std::size_t bytes_max = 64 * 1024;
  std::size_t size_;
  std::string copies_;
};

/// Counts the requests of one connection, which arrive in arbitrary pieces.
class RequestCount {
 public:
  /// Returns the number of requests that end in `bytes`.
  std::size_t add(std::string_view bytes, std::size_t request_bytes) noexcept {
    if (request_bytes == 0) return add_heads(bytes);
    const std::size_t total = left_over_ + bytes.size();
    left_over_ = static_cast<std::uint32_t>(total % request_bytes);
    return total / request_bytes;
  }

 private:
  static constexpr std::string_view head_end = "\r\n\r\n";

  std::size_t add_heads(std::string_view bytes) noexcept {
    std::size_t count = 0;
    // The rest of a request that began in the last piece; most pieces end with a request.
    while (left_over_ != 0 && !bytes.empty()) {
      count += step(bytes.front());
      bytes.remove_prefix(1);
    }
    if (bytes.empty()) return count;
    count += count_whole(bytes);
    if (bytes.ends_with(head_end)) return count;
    const std::size_t last = bytes.rfind(head_end);
    if (last != std::string_view::npos) bytes.remove_prefix(last + head_end.size());
    if (bytes.size() > 3) bytes.remove_prefix(bytes.size() - 3);
    for (const char each : bytes) step(each);
    return count;
  }

  std::size_t step(char character) noexcept {
    if (character != head_end[left_over_]) {
      left_over_ = character == '\r' ? 1 : 0;
      return 0;
    }
    if (++left_over_ != head_end.size()) return 0;
    left_over_ = 0;
    return 1;
  }

  static std::size_t count_whole(std::string_view bytes) noexcept {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    const __m128i carriage_return = _mm_set1_epi8('\r');
    const __m128i line_feed = _mm_set1_epi8('\n');
    const auto load = [](const char* from) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    };
    std::size_t count = 0;
    for (; end - at >= 16 + 3; at += 16) {
      const __m128i first = _mm_and_si128(_mm_cmpeq_epi8(load(at), carriage_return),
                                          _mm_cmpeq_epi8(load(at + 1), line_feed));
      const __m128i second = _mm_and_si128(_mm_cmpeq_epi8(load(at + 2), carriage_return),
                                           _mm_cmpeq_epi8(load(at + 3), line_feed));
      const int found = _mm_movemask_epi8(_mm_and_si128(first, second));
      count += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(found)));
    }
    for (; end - at >= 4; ++at) {
      count += std::memcmp(at, head_end.data(), head_end.size()) == 0 ? 1 : 0;
    }
    return count;
  }

  std::uint32_t left_over_ = 0;  // received bytes of a head's end or of a request
};

}  // namespace limit
