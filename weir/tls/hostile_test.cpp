// Tests a server's side against a client that cuts or changes its bytes at every point.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/ssl_engine.hpp"
#include "weir/tls/test/tls_fixture.hpp"

namespace weir::tls::hostile_test {
namespace {

using detail::SslEngine;

class HostileTest : public TlsTest {
 protected:
  /// The result of one connection at the server.
  struct Seen {
    bool accepted = false;
    std::string text;
    std::error_code end;  // of the handshake, or of reading
  };

  /// Performs the handshake up to the server's flight. Returns the rest of the client's bytes:
  /// Finished, two records of data, and close_notify.
  Task<std::string> client_bytes(weir::Stream& stream, SslEngine& engine) {
    Buffer input;
    Buffer output;
    EXPECT_EQ(engine.handshake(input, output), SslEngine::Step::needs_input);
    EXPECT_TRUE(co_await stream.write(in_records(output.text())));
    output = {};
    auto step = SslEngine::Step::needs_input;
    while (step == SslEngine::Step::needs_input) {
      auto bytes = co_await stream.read();
      EXPECT_TRUE(bytes);
      if (!bytes) co_return "";
      input = std::move(*bytes);
      step = engine.handshake(input, output);
    }
    EXPECT_EQ(step, SslEngine::Step::finished);
    finished_size_ = output.size();
    EXPECT_FALSE(engine.seal(to_bytes("hello"), output));
    EXPECT_FALSE(engine.seal(to_bytes("world"), output));
    engine.seal_close(output);
    co_return std::string(output.text());
  }

  /// Returns the message of the record `hello` in records with hello_part_ bytes.
  std::string in_records(std::string_view hello) const {
    const std::string header(hello.substr(0, 3));
    std::string records;
    for (hello.remove_prefix(5); !hello.empty();) {
      const std::string_view part = hello.substr(0, hello_part_);
      const auto size = static_cast<std::uint16_t>(part.size());
      records += header + static_cast<char>(size >> 8) + static_cast<char>(size);
      records += part;
      hello.remove_prefix(part.size());
    }
    return records;
  }

  /// Connects, and sends what `change(bytes)` makes of the client's bytes. Then ends the stream.
  template <class Change>
  Task<> client(tcp::Stream stream, Change change) {
    auto engine = SslEngine::make(*client_context_, SslEngine::Side::client).value();
    engine->set_time(platform_->wall_time());
    std::string bytes = co_await client_bytes(stream, *engine);
    total_ = bytes.size();
    change(bytes);
    std::ignore = co_await stream.write(bytes);
    std::ignore = stream.finish_writing();
    std::ignore = co_await read_to_end(stream);
  }
  Task<Seen> server(tcp::Stream stream) {
    Seen seen;
    AnyStream end(std::move(stream));
    auto accepted = co_await acceptor_->accept(std::move(end));
    if (!accepted) {
      seen.end = accepted.error().code();
      co_return seen;
    }
    seen.accepted = true;
    auto all_of_it = co_await read_to_end(*accepted);
    seen.text = std::move(all_of_it.first);
    seen.end = all_of_it.second;
    co_return seen;
  }

  /// Returns what the server sees of a client that changes its bytes.
  template <class Change>
  Seen seen_after(Change change) {
    const auto talk = [&]() -> Task<Seen> {
      co_await make_sides();
      if (client_context_ == nullptr) {
        client_options_.verification = Verification::none;
        const detail::ClientSnapshot none{.trust = {}, .store = detail::make_store({}).value()};
        client_context_ = detail::make_client_context(client_options_, none).value();
      }
      Pair pair = co_await connect_pair();
      auto serving = server(std::move(pair.server));
      auto asking = client(std::move(pair.client), change);
      auto both = co_await all(std::move(serving), std::move(asking));
      co_return std::get<0>(std::move(both.value()));
    };
    return run(talk());
  }

  detail::SslContextPtr client_context_;
  std::size_t hello_part_ = std::size_t{16} * 1024;
  std::size_t finished_size_ = 0;
  std::size_t total_ = 0;
};
INSTANTIATE_TEST_SUITE_P(On, HostileTest, simulated_net_kind(),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(HostileTest, WholeConnectionEndsInOrder) {
  const Seen seen = seen_after([](std::string&) {});
  EXPECT_TRUE(seen.accepted);
  EXPECT_EQ(seen.text, "helloworld");
  EXPECT_EQ(seen.end, make_error_code(Errc::end_of_stream));
}

TEST_P(HostileTest, FirstMessageMayHaveSeveralRecords) {
  for (const std::size_t part : {1000U, 200U, 100U, 33U, 20U}) {
    hello_part_ = part;
    const Seen seen = seen_after([](std::string&) {});
    EXPECT_TRUE(seen.accepted) << part << ": " << seen.end.message();
    EXPECT_EQ(seen.text, "helloworld") << part;
  }
}

TEST_P(HostileTest, EachTruncationIsAnErrorOfItsOwn) {
  seen_after([](std::string&) {});
  ASSERT_GT(total_, finished_size_);
  const std::size_t record_size = 5 + 5 + 1 + 16;  // header, data, type, tag
  for (std::size_t size = 0; size < total_; ++size) {
    const Seen seen = seen_after([size](std::string& bytes) { bytes.resize(size); });
    ASSERT_EQ(seen.accepted, size >= finished_size_) << size;
    if (!seen.accepted) {
      ASSERT_EQ(seen.end, make_error_code(Error::peer_left)) << size;
      continue;
    }
    const std::size_t records = (size - finished_size_) / record_size;
    ASSERT_EQ(seen.text, std::string_view("helloworld").substr(0, 5 * records)) << size;
    ASSERT_EQ(seen.end, make_error_code(Error::truncated)) << size;
  }
}

TEST_P(HostileTest, EachChangedByteEndsTheConnection) {
  seen_after([](std::string&) {});
  for (std::size_t index = 0; index < total_; ++index) {
    const Seen seen = seen_after(
        [index](std::string& bytes) { bytes[index] = static_cast<char>(bytes[index] ^ 0x20); });
    ASSERT_TRUE(std::string_view("helloworld").starts_with(seen.text)) << index;
    ASSERT_NE(seen.end, make_error_code(Errc::end_of_stream)) << index;
  }
}

}  // namespace
}  // namespace weir::tls::hostile_test
