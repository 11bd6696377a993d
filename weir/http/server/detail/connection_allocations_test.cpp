// Tests that a request makes no heap allocation, over real sockets on every backend. All memory
// comes from the core's pool in the steady state.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/server/detail/accept_connections.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/http/test/heap_fixture.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/task/scope.hpp"

namespace {

using weir::TestHeap;

std::atomic<std::uint64_t>& news = TestHeap::news;
std::atomic<std::uint64_t> mallocs{0};  // calls of malloc, where they can be counted

[[maybe_unused]] void* counted(std::size_t bytes) {
  news.fetch_add(1, std::memory_order_relaxed);
  if (TestHeap::allocation_failure != nullptr && TestHeap::allocation_failure->now())
    throw std::bad_alloc();
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The sanitizers bring a malloc of their own, which must stay.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEIR_TEST_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_TEST_SANITIZED 1
#endif
#ifdef WEIR_TEST_SANITIZED
constexpr bool counts_mallocs = false;
#else
constexpr bool counts_mallocs = true;
extern "C" void* __libc_malloc(std::size_t bytes);                           // NOLINT: glibc's name
extern "C" void* __libc_calloc(std::size_t count, std::size_t bytes);        // NOLINT: glibc's name
extern "C" void* __libc_realloc(void* memory, std::size_t bytes);            // NOLINT: glibc's name
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t bytes);  // NOLINT: glibc's name
extern "C" void* malloc(std::size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
extern "C" void* calloc(std::size_t count, std::size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
extern "C" void* realloc(void* memory, std::size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
extern "C" int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
#endif

// The thread sanitizer's operators cannot be replaced one by one either; see TestHeap::replaced.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_TEST_THREAD_SANITIZED 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define WEIR_TEST_THREAD_SANITIZED 1
#endif
#ifndef WEIR_TEST_THREAD_SANITIZED
void* operator new(std::size_t bytes) {
  return counted(bytes);
}
void* operator new[](std::size_t bytes) {
  return counted(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  news.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  news.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace weir::http::connection_allocations_test {
namespace {

Task<Response> ping(Request& request) {
  auto body = co_await request.body_view();
  if (!body) co_return Response(to_status(body.error()));
  co_return Response(Status::ok, json_type, Body(*body));
}

struct Ping {
  int sequence;
};
struct Pong {
  Ping ping;
  const char* text;
};

/// Has a server on a loop of this thread, and a client without a loop. The count between two
/// moments is therefore the cost of the requests between them.
class AllocationsTest : public testing::TestWithParam<BackendChoice>, Continuation, loop::Runnable {
 protected:
  AllocationsTest() : Continuation(root_kind<&ended>), loop::Runnable(&begin) {}

  void SetUp() override {
    auto loop = Loop::make(platform_, {.backend = GetParam()});
    if (!loop) {
      GTEST_SKIP() << "this kernel has no such backend: " << loop.error().message();
    }
    loop_ = std::move(*loop);
    routes_.get("/", [] { return text("Hello, World!\n"); });
    routes_.get("/hello/{name}",
                [](std::string_view name) { return text("Hello, " + std::string(name) + "!\n"); });
    routes_.post("/ping", ping);
    routes_.post("/json", [](Ping ping) { return ping; });
    routes_.post("/json/task", [](Ping ping) -> Task<Result<Ping>> { co_return ping; });
    routes_.post("/json/long", [](Ping ping) {
      return Pong{ping, "a text that makes the answer longer than what a Body holds in itself"};
    });
    loop_->group().listener_registry().on_listening = [this](const os::Address& bound) {
      bound_ = bound;
    };
    const ServeOptions options{.plain_http2 = PlainHttp2::prior_knowledge};
    server_.emplace(*loop_, routes_, options);
    loop_->ready(*this);
    while (!bound_) loop_->turn(soon());
    client_ = os::open_stream(os::AddressFamily::ipv4).value();
    ASSERT_TRUE(os::set_no_delay(client_.get(), true));  // each piece leaves as a packet of its own
    const auto connecting = os::start_connect(client_.get(), *bound_);
    ASSERT_TRUE(connecting || connecting.error() == system_error(EINPROGRESS));
  }

  void TearDown() override {
    if (loop_ == nullptr) return;
    client_ = os::Fd();
    cancel_.cancel();
    while (!ended_) loop_->turn(soon());
    root_.reset();
    server_.reset();
  }

  Instant soon() { return after(platform_.now(), 10ms); }

  /// Sends the pieces, each in a segment of its own, and reads an answer of `size` bytes.
  void ask(std::span<const std::string_view> pieces, std::size_t size) {
    for (const std::string_view piece : pieces) {
      while (::send(client_.get(), piece.data(), piece.size(), MSG_NOSIGNAL) < 0) {
        ASSERT_TRUE(errno == EAGAIN || errno == ENOTCONN) << errno;
        loop_->turn(soon());
      }
      for (int i = 0; i < 4; ++i) loop_->turn(platform_.now());
    }
    std::size_t got = 0;
    while (got < size) {
      const ssize_t count = ::recv(client_.get(), received_.data() + got, size - got, MSG_DONTWAIT);
      if (count > 0) {
        got += static_cast<std::size_t>(count);
      } else {
        ASSERT_EQ(errno, EAGAIN) << "the server has closed";
        loop_->turn(soon());
      }
    }
  }

  /// Returns the size of the answer, which is all that arrives within a while.
  std::size_t answer_size(std::span<const std::string_view> pieces) {
    ask(pieces, 1);
    for (int i = 0; i < 10; ++i) loop_->turn(after(platform_.now(), 1ms));
    const ssize_t more =
        ::recv(client_.get(), received_.data() + 1, received_.size() - 1, MSG_DONTWAIT);
    EXPECT_EQ(std::string_view(received_.data(), 15), "HTTP/1.1 200 OK");
    return 1 + static_cast<std::size_t>(std::max<ssize_t>(0, more));
  }

  void expect_none(std::span<const std::string_view> pieces) {
    const std::size_t size = answer_size(pieces);
    expect_none_in([&] { ask(pieces, size); });
  }
  /// Expects that `ask_once()` allocates nothing after some rounds.
  template <class Ask>
  void expect_none_in(const Ask& ask_once) {
    for (int round = 0; round < 100; ++round) ASSERT_NO_FATAL_FAILURE(ask_once());
    std::uint64_t news_before = 0;
    std::uint64_t mallocs_before = 0;
    std::uint64_t slow_before = 0;
    // Repeated if the machine was busy: the log line of a slow turn allocates. A busy machine can
    // also leave more blocks in use at once than ever before, and the pool grows by these.
    // The pool calls malloc, and not operator new.
    int tries_left = 3;
    do {
      news_before = news;
      mallocs_before = mallocs;
      slow_before = loop_->counters().slow_turns.value();
      for (int round = 0; round < 1000; ++round) ASSERT_NO_FATAL_FAILURE(ask_once());
    } while (loop_->counters().slow_turns.value() != slow_before ||
             (news == news_before && mallocs != mallocs_before && --tries_left > 0));
    EXPECT_EQ(news - news_before, 0u);
    if constexpr (counts_mallocs && BlockPool::caches_free_blocks) {
      EXPECT_EQ(mallocs - mallocs_before, 0u);
    } else {
      // The pool's own blocks come from the heap each time under a sanitizer.
      static_cast<void>(mallocs_before);
    }
  }
  /// Sends the frames of HTTP/2 and reads until `streams` streams have ended.
  void ask_http2(std::string_view input, int streams) {
    ask(std::span(&input, 1), 0);
    FrameReader reader;
    while (streams > 0) {
      const ssize_t count = ::recv(client_.get(), received_.data(), received_.size(), MSG_DONTWAIT);
      if (count <= 0) {
        ASSERT_EQ(errno, EAGAIN) << "the server has closed";
        loop_->turn(soon());
        continue;
      }
      Bytes rest = to_bytes({received_.data(), static_cast<std::size_t>(count)});
      for (;;) {
        const FrameEvent event = reader.next(rest);
        rest = rest.subspan(event.consumed);
        if (event.kind == FrameEvent::Kind::need_more) break;
        ASSERT_NE(event.kind, FrameEvent::Kind::connection_error);
        if (event.kind != FrameEvent::Kind::data || !event.last) continue;
        if ((event.flags & FrameFlag::end_stream) != 0) --streams;
      }
    }
  }
  void expect_none(std::string_view request) { expect_none(std::span(&request, 1)); }

 private:
  static void begin(loop::Runnable& self) {
    auto& test = static_cast<AllocationsTest&>(self);
    test.root_.emplace(with_scope(OnFailure::isolate, &listen_and_serve, std::ref(*test.server_),
                                  os::Address::loopback(0)));
    test.root_->start(Context{test.loop_.get(), &test.cancel_}, test);
  }
  static std::coroutine_handle<> ended(Continuation& self, std::coroutine_handle<>) {
    static_cast<AllocationsTest&>(self).ended_ = true;
    return std::noop_coroutine();
  }

  OsPlatform platform_;
  std::unique_ptr<Loop> loop_;
  Router routes_;
  std::optional<ServerState> server_;
  std::optional<os::Address> bound_;
  os::Fd client_;
  CancelSource cancel_;
  std::optional<Task<Result<>>> root_;
  bool ended_ = false;
  std::array<char, 64 * 1024> received_;
};

/// Returns the same pointer, and keeps the compiler from removing its uses.
template <class T>
T* kept_from_optimiser(T* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

TEST(Allocations, AreCounted) {
  const std::uint64_t news_before = news;
  const std::uint64_t mallocs_before = mallocs;
  auto* const kept = new std::string(1000, 'x');
  if constexpr (TestHeap::replaced) {
    EXPECT_GE(news - news_before, 2u);
  }
  delete kept;
  if constexpr (counts_mallocs) {
    void* const block =
        BlockPool::allocate(100);  // no pool is current, so the block comes from the heap
    EXPECT_GE(mallocs - mallocs_before, 3u);
    BlockPool::release(block);
    struct alignas(128) Wide {
      std::array<char, 128> bytes;
    };
    const auto counts = [](auto allocate) {
      const std::uint64_t before = mallocs;
      allocate();
      return mallocs > before;
    };
    EXPECT_TRUE(counts([] { delete kept_from_optimiser(new Wide); }));
    EXPECT_TRUE(counts([] { std::free(kept_from_optimiser(std::calloc(3, 100))); }));
    EXPECT_TRUE(counts([] { std::free(kept_from_optimiser(std::realloc(nullptr, 100))); }));
  }
}

TEST_P(AllocationsTest, Get) {
  expect_none(
      "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: a-client/1.0\r\nAccept: */*\r\n\r\n");
}

TEST_P(AllocationsTest, PathParams) {
  expect_none("GET /hello/world HTTP/1.1\r\nHost: localhost\r\n\r\n");
  expect_none("GET /hello/%77orld HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

TEST_P(AllocationsTest, Pipelined) {
  std::string batch;
  for (int i = 0; i < 16; ++i) batch += "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  expect_none(batch);
}

TEST_P(AllocationsTest, BodiesInPlace) {
  expect_none(
      "POST /ping HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18\r\n\r\n"
      "{\"sequence\": 1234}");
}

TEST_P(AllocationsTest, BodiesThatArriveAfterTheirHead) {
  constexpr std::array<std::string_view, 2> later{
      "POST /ping HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18\r\n\r\n",
      "{\"sequence\": 1234}"};
  expect_none(later);
  constexpr std::array<std::string_view, 3> in_pieces{
      "POST /ping HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18\r\n\r\n", "{\"sequence\"",
      ": 1234}"};
  expect_none(in_pieces);
}

TEST_P(AllocationsTest, ChunkedBodies) {
  expect_none(
      "POST /ping HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "9\r\n{\"sequenc\r\n9\r\ne\": 1234}\r\n0\r\n\r\n");
}

TEST_P(AllocationsTest, Json) {
  for (const std::string_view path : {"/json", "/json/task", "/json/long"}) {
    const std::string head =
        "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18\r\n\r\n";
    expect_none(head + "{\"sequence\": 1234}");
    const std::array<std::string_view, 3> in_pieces{head, "{\"sequence\"", ": 1234}"};
    expect_none(in_pieces);
  }
}

TEST_P(AllocationsTest, HeadsInPieces) {
  constexpr std::array<std::string_view, 2> pieces{"GET / HTTP/1.1\r\nHost: loc", "alhost\r\n\r\n"};
  expect_none(pieces);
}

TEST_P(AllocationsTest, Http2) {
  using namespace frames;
  ask_http2(preface() + window_update(0, 1U << 30), 0);
  const auto batch = [](std::uint32_t first) {
    std::string input;
    for (std::uint32_t id = first; id < first + 32; id += 4) {
      input += get(id, "/");
      input += post(id + 2, "/json/task") + data(id + 2, "{\"sequence\"") +
               data(id + 2, ": 1234}", FrameFlag::end_stream);
    }
    return input;
  };
  // The streams of the batches have the same bytes, except for their identifiers.
  std::string input = batch(1);
  const std::string next = batch(33);
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < input.size(); ++at) {
    if (input[at] != next[at]) places.push_back(at - 3);
  }
  std::uint32_t step = 0;
  std::vector<std::uint32_t> streams;
  for (const std::size_t at : places) {
    streams.push_back(static_cast<unsigned char>(input[at + 3]));
  }
  expect_none_in([&] {
    for (std::size_t each = 0; each < places.size(); ++each) {
      const std::uint32_t id = streams[each] + 32 * step;
      for (std::size_t byte = 0; byte < 4; ++byte) {
        input[places[each] + byte] = static_cast<char>(id >> (24 - 8 * byte));
      }
    }
    ++step;
    ask_http2(input, 16);
  });
}

std::string name_of_backend(const testing::TestParamInfo<BackendChoice>& info) {
  constexpr std::array names{"automatic", "uring", "uring_6_1", "epoll", "poll"};
  return names[static_cast<std::size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Every, AllocationsTest,
                         testing::Values(BackendChoice::uring, BackendChoice::uring_6_1,
                                         BackendChoice::epoll, BackendChoice::poll),
                         name_of_backend);

}  // namespace
}  // namespace weir::http::connection_allocations_test
