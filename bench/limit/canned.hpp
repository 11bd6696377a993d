// What the limit servers share: their options, the canned answer, and how requests are counted.
//
// A limit server marks what this machine and kernel can do: it does not parse. A request ends at
// "\r\n\r\n", or after a fixed number of bytes; each is answered with the same bytes, all that
// arrived together with one send. One thread, one loop.
#pragma once

#include <emmintrin.h>

#include <CLI/CLI.hpp>
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

#include "weir/os/detail/machine/affinity.hpp"
#include "weir/os/detail/machine/limits.hpp"
#include "weir/os/detail/io/socket.hpp"

namespace limit {

struct Options {
  std::uint16_t port = 0;            ///< on 127.0.0.1; 0: the kernel chooses, and it is printed
  int cpu = -1;                      ///< to stay on; -1: anywhere
  std::size_t response_bytes = 128;  ///< of one response, head included
  std::size_t request_bytes = 0;     ///< of one request, head included; 0: up to "\r\n\r\n"
  bool close = false;                ///< each connection ends after its first response
};

/// Prints what failed, and why, and exits.
[[noreturn]] inline void give_up(const char* what, int error = errno) {
  std::fprintf(stderr, "limit: %s: %s\n", what, std::strerror(error));
  std::exit(1);
}

/// From the command line; prints one line and exits for --help and for what is wrong.
inline Options parse_options(int argc, char** argv) {
  Options options;
  CLI::App parser("A server that answers without parsing: the limit of this machine");
  parser.add_option("--port", options.port, "port on 127.0.0.1; 0: any free one, printed");
  parser.add_option("--cpu", options.cpu, "CPU to stay on");
  parser.add_option("--response-bytes", options.response_bytes, "bytes of one whole response")
      ->check(CLI::Range(96, 1 << 20))
      ->capture_default_str();
  parser.add_option("--request-bytes", options.request_bytes,
                    "bytes of one whole request (default: up to an empty line)");
  parser.add_flag("--close", options.close, "end each connection after its first response");
  try {
    parser.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(parser.exit(error));
  }
  return options;
}

/// A listening socket as the options say, on the CPU that they name from now on. Prints its port;
/// SIGTERM ends the process.
inline weir::os::Fd start_listening(const Options& options) {
  if (options.cpu >= 0) {
    const auto pinned = weir::os::pin_this_thread(options.cpu);
    if (!pinned) give_up("pinning", pinned.error().value());
  }
  weir::os::raise_descriptor_limit();
  const auto address = weir::os::Address::loopback(options.port);
  auto listener = weir::os::open_listener(address, {.backlog = 65535});
  if (!listener) give_up("listening", listener.error().value());
  const auto no_delay = weir::os::set_no_delay(listener->get(), true);  // is inherited
  if (!no_delay) give_up("TCP_NODELAY", no_delay.error().value());
  const auto bound = weir::os::local_address(listener->get());
  if (!bound) give_up("the address", bound.error().value());
  std::fprintf(stderr, "limit: listening on %s\n", bound->to_string().c_str());
  return std::move(*listener);
}

/// As many copies of one response as a send may take at once.
class Answers {
 public:
  explicit Answers(const Options& options) : size_(options.response_bytes) {
    std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
    if (options.close) head += "Connection: close\r\n";
    head += "Content-Length: ";
    // The length's own digits count too.
    std::size_t body = size_ - head.size() - 4 - 1;
    while (head.size() + std::to_string(body).size() + 4 + body > size_) --body;
    head += std::to_string(body) + "\r\n\r\n";
    const std::string one = head + std::string(size_ - head.size(), 'x');
    const std::size_t count = std::max<std::size_t>(1, bytes_max / size_);
    copies_.reserve(count * size_);
    for (std::size_t made = 0; made < count; ++made) copies_ += one;
  }

  /// Of one response.
  std::size_t size() const noexcept { return size_; }
  /// What to send next when `owed` bytes are: whatever was sent before ended `owed` bytes before
  /// the end of a response.
  std::string_view next(std::size_t owed) const noexcept {
    const std::size_t begin = (size_ - owed % size_) % size_;
    return std::string_view(copies_).substr(begin, std::min(owed, copies_.size() - begin));
  }

 private:
  static constexpr std::size_t bytes_max = 64 * 1024;
  std::size_t size_;
  std::string copies_;
};

/// Counts the requests of one connection in whatever pieces they arrive.
class RequestCount {
 public:
  /// How many end in `bytes`.
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
    // What began in the last piece; most end with a request, so that nothing has.
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

  std::uint32_t left_over_ = 0;  // bytes of a head's end, or of a request, that have been seen
};

}  // namespace limit
