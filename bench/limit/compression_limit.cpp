// The limit of compressed responses: compresses a JSON text of 9 KB for each request by a library
// alone, at level 1, and sends it without parsing the request. With --loop it has no sockets, and
// prints the contents that it compresses in a second of CPU time.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include <array>
#include <vector>

#include "bench/limit/canned.hpp"
#include "bench/limit/epoll_server.hpp"

#if WEIR_LIBDEFLATE && WEIR_ZSTD
#include <libdeflate.h>
#include <zstd.h>

namespace {

/// Returns a text like the catalogue of examples/compression.cpp.
std::string make_catalogue() {
  constexpr std::array colours{"red", "green", "light blue", "black", "white"};
  constexpr std::array things{"lamp", "table", "chair", "shelf", "carpet", "mirror", "clock"};
  std::string text = "[";
  for (int id = 1; id <= 125; ++id) {
    const std::string colour = colours[static_cast<std::size_t>(id * id % 5)];
    std::array<char, 32> price;
    std::snprintf(price.data(), price.size(), "%g", id * 7919 % 10'000 / 100.0);
    text.append(id == 1 ? "" : ",").append(R"({"id":)").append(std::to_string(id));
    text.append(R"(,"name":")")
        .append(colour)
        .append(" ")
        .append(things[static_cast<std::size_t>(id % 7)]);
    text.append(R"(","price":)").append(price.data()).append(R"(,"tags":[")").append(colour);
    text.append(id % 3 == 0 ? R"(","new"]})" : R"(","on stock"]})");
  }
  return text.append("]");
}

class Library {
 public:
  explicit Library(bool zstd) : zstd_(zstd) {
    ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, 1);
  }
  /// Returns the whole response. The head has a fixed size.
  std::string_view respond() {
    constexpr std::size_t head_size = 160;
    const std::size_t size =
        zstd_ ? ZSTD_compress2(context_, output_.data() + head_size, output_.size() - head_size,
                               text_.data(), text_.size())
              : libdeflate_gzip_compress(compressor_, text_.data(), text_.size(),
                                         output_.data() + head_size, output_.size() - head_size);
    const int length = std::snprintf(
        output_.data(), head_size,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: %s\r\n"
        "Vary: Accept-Encoding\r\nContent-Length: %zu\r\n\r\n",
        zstd_ ? "zstd" : "gzip", size);
    const auto begin = head_size - static_cast<std::size_t>(length);
    std::memmove(output_.data() + begin, output_.data(), static_cast<std::size_t>(length));
    return std::string_view(output_.data(), output_.size()).substr(begin, size + head_size - begin);
  }

 private:
  const bool zstd_;
  const std::string text_ = make_catalogue();
  libdeflate_compressor* const compressor_ = libdeflate_alloc_compressor(1);
  ZSTD_CCtx* const context_ = ZSTD_createCCtx();
  std::array<char, 32 * 1024> output_;
};

struct Connection {
  limit::RequestCount requests;
};

class Server : public limit::EpollServer<Server, Connection> {
 public:
  Server(const limit::Options& options, Library& library)
      : EpollServer(limit::start_listening(options)), options_(options), library_(library) {}

  bool accepted(int) { return true; }
  void serve(int descriptor, std::uint32_t) {
    for (;;) {
      const ssize_t got = ::recv(descriptor, input_.data(), input_.size(), 0);
      if (got <= 0) {
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        ::close(descriptor);
        return;
      }
      const std::string_view bytes(input_.data(), static_cast<std::size_t>(got));
      std::size_t count = connection_of(descriptor).requests.add(bytes, options_.request_bytes);
      for (; count > 0; --count) {
        const std::string_view answer = library_.respond();
        // The clients of this limit read immediately: a full send buffer is an error.
        if (::send(descriptor, answer.data(), answer.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(answer.size())) {
          ::close(descriptor);
          return;
        }
      }
      if (bytes.size() < input_.size()) return;
    }
  }

 private:
  const limit::Options options_;
  Library& library_;
  std::array<char, 16 * 1024> input_;
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  bool zstd = false;
  bool loop = false;
  const limit::Options options = limit::parse_options(
      argc, argv,
      {{.name = "--zstd", .value = &zstd, .help = "compress with zstd in place of gzip"},
       {.name = "--loop",
        .value = &loop,
        .help = "only compress for two seconds, without sockets"}});
  Library library(zstd);
  if (!loop) Server(options, library).run();
  const double begin = cpu_seconds();
  std::size_t count = 0;
  std::size_t bytes = 0;
  while (cpu_seconds() - begin < 2) {
    for (int round = 0; round < 100; ++round, ++count) bytes += library.respond().size();
  }
  std::printf("%.0f a CPU second, %zu bytes each\n",
              static_cast<double>(count) / (cpu_seconds() - begin), bytes / count);
}

#else

int main() {
  std::fputs("compression_limit: the build is without libdeflate or zstd\n", stderr);
  return 1;
}

#endif
