#include "weir/net/dns/detail/dns_client.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "weir/net/test/failing_platform.hpp"
#include "weir/net/test/resolver_fixture.hpp"
#include "weir/task/timeout.hpp"

namespace weir::dns::dns_client_test {
namespace {

TEST(ResolveErrors, HaveTextsAndConditions) {
  EXPECT_STREQ(resolve_error_category().name(), "weir.dns");
  const std::error_code timed_out = ResolveError::timed_out;
  EXPECT_EQ(timed_out, std::errc::timed_out);
  EXPECT_EQ(make_error_code(ResolveError::unreachable), std::errc::host_unreachable);
  EXPECT_NE(make_error_code(ResolveError::refused), std::errc::timed_out);
  const std::vector<std::pair<ResolveError, std::string>> texts = {
      {ResolveError::no_address, "the name has no such address"},
      {ResolveError::not_found, "no such name"},
      {ResolveError::unreachable, "no name server is reachable"},
      {ResolveError::timed_out, "no name server answered in time"},
      {ResolveError::malformed, "a name server's answer is malformed"},
      {ResolveError::refused, "a name server refused to answer"},
      {ResolveError::server_failed, "a name server failed"}};
  EXPECT_EQ(texts.size(), resolve_error_count);
  for (const auto& [error, text] : texts) EXPECT_EQ(make_error_code(error).message(), text);
  EXPECT_EQ(resolve_error_category().message(99), "unknown error of name resolution: 99");
}

TEST(ResolveErrors, MoreSpecificOneOfTwoIsReturned) {
  const std::vector<std::error_code> rising = {{},
                                               ResolveError::no_address,
                                               ResolveError::not_found,
                                               ResolveError::unreachable,
                                               ResolveError::timed_out,
                                               ResolveError::malformed,
                                               ResolveError::refused,
                                               ResolveError::server_failed,
                                               system_error(EMFILE)};
  for (std::size_t low = 0; low < rising.size(); ++low) {
    for (std::size_t high = low; high < rising.size(); ++high) {
      EXPECT_EQ(more_specific_error(rising[low], rising[high]), rising[high]) << low << high;
      EXPECT_EQ(more_specific_error(rising[high], rising[low]), rising[high]) << low << high;
    }
  }
  EXPECT_EQ(more_specific_error(system_error(EMFILE), system_error(ENFILE)), system_error(EMFILE));
  EXPECT_EQ(more_specific_error(make_error_code(Errc::limit_reached), system_error(ENFILE)),
            Errc::limit_reached);
}

class DnsClientTest : public testing::Test {
 protected:
  void TearDown() override {
    platform_.run_until_idle(*loop_);
    EXPECT_EQ(loop_->timers().armed(), 0U);
    EXPECT_EQ(platform_.open_descriptors(), 0U);
  }
  /// Runs `body()`, which returns a Task<>, while two servers answer.
  template <class Body>
  void serve(Body body) {
    const auto with_second = [&]() -> Task<> { return with_name_server(second_, body); };
    weir::run(*loop_, with_name_server(first_, with_second));
  }
  DnsClientOptions of_both() const {
    DnsClientOptions options;
    options.servers = {first_.address(), second_.address()};
    options.timeout = 1h;
    return options;
  }
  DnsClientOptions of_first() const {
    DnsClientOptions options = of_both();
    options.servers.pop_back();
    return options;
  }
  /// Returns the error of a query for a.example.
  Task<std::error_code> ask(std::string name = "a.example") {
    const auto answer = co_await client_.query(std::move(name), RecordType::a);
    co_return error_of(answer);
  }

  FailingPlatform platform_;
  std::unique_ptr<Loop> loop_ = Loop::make(platform_, {}).value();
  FakeDnsServer first_;
  FakeDnsServer second_;
  DnsClient client_;
};

TEST_F(DnsClientTest, AsksOnceAndKeepsOneAddressByDefault) {
  first_.rules["a.example"].behavior = Behavior::never;
  first_.rules["b.example"] = at("192.0.2.1", "192.0.2.2");
  serve([&]() -> Task<> {
    client_.configure(of_first());
    const auto answer = co_await client_.query("b.example", RecordType::a);
    EXPECT_EQ(answer.value().addresses, ips("192.0.2.1"));
    const Instant begun = platform_.now();
    EXPECT_EQ(co_await ask(), ResolveError::timed_out);
    EXPECT_EQ(platform_.now() - begun, 1h);
  });
}

TEST_F(DnsClientTest, NewOptionsBeginWithTheFirstServer) {
  first_.rules["a.example"].code = 5;
  second_.rules["a.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    DnsClientOptions options = of_both();
    client_.configure(options);
    for (int each = 0; each < 3; ++each) EXPECT_EQ(co_await ask(), std::error_code());
    EXPECT_EQ(first_.asked.size(), 1U);
    EXPECT_EQ(second_.asked.size(), 3U);
    client_.configure(options);
    EXPECT_EQ(co_await ask(), std::error_code());
    EXPECT_EQ(first_.asked.size(), 1U) << "the options are the same";
    options.attempts = 2;
    client_.configure(options);
    EXPECT_EQ(co_await ask(), std::error_code());
    EXPECT_EQ(first_.asked.size(), 2U);
    client_.configure(of_first());
    EXPECT_EQ(co_await ask(), ResolveError::refused);
    EXPECT_EQ(first_.asked.size(), 3U);
  });
}

TEST_F(DnsClientTest, ServerThatRefusesIsNotAskedAgainAfterOneThatIsSilent) {
  first_.rules["a.example"].behavior = Behavior::never;
  second_.rules["a.example"].code = 5;
  serve([&]() -> Task<> {
    DnsClientOptions options = of_both();
    options.attempts = 3;
    client_.configure(options);
    EXPECT_EQ(co_await ask(), ResolveError::refused);
    EXPECT_EQ(first_.asked.size(), 3U);
    EXPECT_EQ(second_.asked.size(), 1U);
  });
}

TEST_F(DnsClientTest, AsksAgainAfterTimeoutsAndMalformedResponsesOnly) {
  struct Case {
    Behavior behavior;
    unsigned code;
    std::size_t times;
  };
  const std::vector<Case> cases = {{Behavior::never, 0, 3},
                                   {Behavior::malformed, 0, 3},
                                   {Behavior::truncated_by_connection, 0, 3},
                                   {Behavior::correct, 2, 1},
                                   {Behavior::correct, 5, 1}};
  serve([&]() -> Task<> {
    DnsClientOptions options = of_first();
    options.attempts = 3;
    client_.configure(options);
    for (const Case& each : cases) {
      DnsRule rule = at("192.0.2.1");
      rule.behavior = each.behavior;
      rule.code = each.code;
      first_.rules["a.example"] = rule;
      first_.asked.clear();
      EXPECT_NE(co_await ask(), std::error_code());
      EXPECT_EQ(first_.times_asked("a.example A"), each.times) << each.code;
    }
  });
}

TEST_F(DnsClientTest, ResponseCodesAreErrors) {
  serve([&]() -> Task<> {
    client_.configure(of_first());
    for (const unsigned code : {1U, 2U, 4U, 5U, 6U, 15U}) {
      first_.rules["a.example"].code = code;
      const bool refused = code == 4 || code == 5;
      const auto expected = refused ? ResolveError::refused : ResolveError::server_failed;
      EXPECT_EQ(co_await ask(), expected) << code;
    }
    for (const unsigned code : {0U, 3U}) {
      first_.rules["a.example"].code = code;
      const auto answer = co_await client_.query("a.example", RecordType::a);
      EXPECT_EQ(answer.value().code, static_cast<ResponseCode>(code));
    }
  });
}

TEST_F(DnsClientTest, RejectsBadResponsesOverTcp) {
  const std::vector<std::pair<Behavior, ResolveError>> cases = {
      {Behavior::wrong_by_connection, ResolveError::malformed},
      {Behavior::truncated_by_connection, ResolveError::malformed},
      {Behavior::closed_by_connection, ResolveError::server_failed},
      {Behavior::cut_by_connection, ResolveError::server_failed}};
  serve([&]() -> Task<> {
    client_.configure(of_first());
    for (const auto& [behavior, error] : cases) {
      first_.rules["a.example"] = at("192.0.2.1");
      first_.rules["a.example"].behavior = behavior;
      EXPECT_EQ(co_await ask(), error) << static_cast<int>(behavior);
    }
    EXPECT_EQ(client_.counters().queries.value(), 8U);
    EXPECT_EQ(client_.counters().connections.value(), 4U);
  });
}

TEST_F(DnsClientTest, SendsTheLongestNameOverTcp) {
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  first_.rules[longest] = at("192.0.2.1");
  first_.rules[longest].behavior = Behavior::truncated;
  serve([&]() -> Task<> {
    client_.configure(of_first());
    const auto answer = co_await client_.query(longest, RecordType::a);
    EXPECT_EQ(answer.value().addresses, ips("192.0.2.1"));
    EXPECT_EQ(first_.times_asked(longest + " A by connection"), 1U);
  });
}

// Errors of this machine stay as they are. All others say that the server cannot be reached.
TEST_F(DnsClientTest, ErrorsOfSocketsDistinguishThisMachineFromTheServer) {
  const std::vector<std::pair<int, std::error_code>> cases = {
      {EMFILE, system_error(EMFILE)},           {ENFILE, system_error(ENFILE)},
      {ENOBUFS, system_error(ENOBUFS)},         {ENOMEM, system_error(ENOMEM)},
      {ETIMEDOUT, ResolveError::timed_out},     {ECONNREFUSED, ResolveError::unreachable},
      {ENETUNREACH, ResolveError::unreachable}, {EACCES, ResolveError::unreachable}};
  first_.rules["a.example"] = at("192.0.2.1");
  first_.rules["b.example"] = at("192.0.2.1");
  first_.rules["b.example"].behavior = Behavior::truncated;
  serve([&]() -> Task<> {
    client_.configure(of_first());
    for (const auto& [error, expected] : cases) {
      platform_.datagram_errors = {system_error(error)};
      EXPECT_EQ(co_await ask(), expected) << error;
      platform_.stream_errors = {system_error(error)};
      EXPECT_EQ(co_await ask("b.example"), expected) << error << " of the connection";
      EXPECT_EQ(co_await ask(), std::error_code());
    }
  });
}

TEST_F(DnsClientTest, UnreachableServerIsAskedOnce) {
  first_.rules["a.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    DnsClientOptions options = of_first();
    options.attempts = 3;
    client_.configure(options);
    for (const int error : {ENETUNREACH, ECONNREFUSED}) {
      platform_.datagram_errors = {system_error(error)};
      EXPECT_EQ(co_await ask(), ResolveError::unreachable) << error;
    }
    EXPECT_EQ(client_.counters().queries.value(), 2U);
    EXPECT_TRUE(first_.asked.empty());
  });
}

TEST_F(DnsClientTest, NextServerIsAskedIfTheFirstIsUnreachableOverTcp) {
  first_.rules["a.example"].behavior = Behavior::truncated;
  second_.rules["a.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    client_.configure(of_both());
    platform_.stream_errors = {system_error(ECONNREFUSED)};
    const auto answer = co_await client_.query("a.example", RecordType::a);
    EXPECT_EQ(answer.value().addresses, ips("192.0.2.1"));
    EXPECT_EQ(first_.asked, std::vector<std::string>{"a.example A"});
    EXPECT_EQ(second_.asked, std::vector<std::string>{"a.example A"});
  });
}

TEST_F(DnsClientTest, FirstOfEquallySpecificErrorsIsReturned) {
  serve([&]() -> Task<> {
    client_.configure(of_both());
    platform_.datagram_errors = {system_error(EMFILE), system_error(ENFILE)};
    EXPECT_EQ(co_await ask(), system_error(EMFILE));
  });
}

TEST_F(DnsClientTest, CancelledQueryAsksNoOtherServer) {
  first_.rules["a.example"].behavior = Behavior::never;
  serve([&]() -> Task<> {
    client_.configure(of_both());
    const Instant begun = platform_.now();
    const auto answer = co_await timeout(2s, client_.query("a.example", RecordType::a));
    EXPECT_EQ(error_of(answer), Errc::timed_out);
    EXPECT_EQ(platform_.now() - begun, 2s);
    EXPECT_TRUE(second_.asked.empty());
    EXPECT_EQ(client_.counters().queries.value(), 1U);
  });
}

TEST_F(DnsClientTest, EachQueryHasARandomId) {
  first_.rules["a.example"].behavior = second_.rules["a.example"].behavior = Behavior::never;
  serve([&]() -> Task<> {
    DnsClientOptions options = of_both();
    options.attempts = 4;
    client_.configure(options);
    EXPECT_EQ(co_await ask(), ResolveError::timed_out);
    std::set<unsigned> ids(first_.ids.begin(), first_.ids.end());
    ids.insert(second_.ids.begin(), second_.ids.end());
    EXPECT_EQ(ids.size(), 8U);
    EXPECT_GT(*ids.rbegin() - *ids.begin(), 256U) << "they do not count up";
  });
}

TEST_F(DnsClientTest, ServerThatAnsweredLastIsQueriedFirst) {
  first_.rules["a.example"].code = second_.rules["b.example"].code = 5;
  first_.rules["b.example"] = second_.rules["a.example"] = at("192.0.2.1");
  first_.rules["c.example"] = second_.rules["c.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    client_.configure(of_both());
    struct Case {
      std::string name;
      std::size_t first;  // queries that the first server has received then
      std::size_t second;
    };
    const std::vector<Case> cases = {
        {"a.example", 1, 1}, {"c.example", 1, 2}, {"b.example", 2, 3}, {"c.example", 3, 3}};
    for (const Case& each : cases) {
      EXPECT_EQ(co_await ask(each.name), std::error_code());
      EXPECT_EQ(first_.asked.size(), each.first) << each.name;
      EXPECT_EQ(second_.asked.size(), each.second) << each.name;
    }
  });
}

TEST_F(DnsClientTest, RunningQueryKeepsItsServersAndUsesTheNewOptions) {
  first_.rules["a.example"].behavior = Behavior::never;
  second_.rules["a.example"] = at("192.0.2.1");
  serve([&]() -> Task<> {
    DnsClientOptions options = of_first();
    options.attempts = 2;
    client_.configure(options);
    const Instant begun = platform_.now();
    const auto change = [&]() -> Task<> {
      std::ignore = co_await sleep(1s);
      options.servers = std::vector<Endpoint>(1, second_.address());
      options.timeout = 1min;
      options.attempts = 3;
      client_.configure(options);
    };
    const auto both = co_await all(ask(), change());
    EXPECT_EQ(std::get<0>(both.value()), ResolveError::timed_out);
    EXPECT_EQ(platform_.now() - begun, 1h + 2min);
    EXPECT_EQ(first_.asked.size(), 3U);
    EXPECT_TRUE(second_.asked.empty());
    EXPECT_EQ(co_await ask(), std::error_code());
    EXPECT_EQ(second_.asked.size(), 1U);
  });
}

// The response over UDP says that it is truncated, and the one over TCP never comes.
TEST_F(DnsClientTest, QueryOverTcpHasATimeLimitOfItsOwn) {
  first_.rules["a.example"] = at("192.0.2.1");
  first_.rules["a.example"].behavior = Behavior::silent_by_connection;
  first_.rules["a.example"].delay = 30min;
  serve([&]() -> Task<> {
    DnsClientOptions options = of_first();
    options.attempts = 2;
    client_.configure(options);
    const Instant begun = platform_.now();
    EXPECT_EQ(co_await ask(), ResolveError::timed_out);
    EXPECT_EQ(platform_.now() - begun, 2 * (30min + 1h));
    EXPECT_EQ(first_.times_asked("a.example A by connection"), 2U);
  });
}

TEST_F(DnsClientTest, ReadsAResponseThatArrivesByteByByte) {
  first_.rules["a.example"] = at("192.0.2.1", "192.0.2.2");
  first_.rules["a.example"].behavior = Behavior::slow_by_connection;
  serve([&]() -> Task<> {
    DnsClientOptions options = of_first();
    options.addresses_max = 2;
    client_.configure(options);
    const auto answer = co_await client_.query("a.example", RecordType::a);
    EXPECT_EQ(answer.value().addresses, ips("192.0.2.1", "192.0.2.2"));
  });
}

/// Returns a response of exactly `size` bytes to a query. It has a text and, at its end, an
/// address.
std::vector<std::byte> response_of_size(Bytes query, std::size_t size) {
  constexpr std::size_t question_at = 12;
  constexpr std::size_t fields = 12;  // of a record, before its data
  DnsWriter message;
  message.raw(query.first(2)).word(0x8180).word(1).word(2).word(0).word(0);
  message.raw(query.subspan(question_at));
  const std::size_t text = size - message.bytes.size() - fields - (fields + 4);
  message.pointer(question_at).record(16, 60, text);
  message.bytes.resize(message.bytes.size() + text);
  message.pointer(question_at).record(1, 60, 4).address(ip("192.0.2.1"));
  EXPECT_EQ(message.bytes.size(), size);
  return std::move(message.bytes);
}

TEST_F(DnsClientTest, ReadsAtMost4096BytesOfADatagram) {
  const auto talk = [&]() -> Task<> {
    auto bound = co_await udp::bind(Endpoint::loopback(0));
    udp::Socket server = std::move(bound.value());
    DnsClientOptions options;
    options.servers = std::vector<Endpoint>(1, server.local_address());
    options.timeout = 1h;
    client_.configure(options);
    const std::vector<std::pair<std::size_t, std::error_code>> cases = {
        {512, {}}, {513, {}}, {4096, {}}, {4097, ResolveError::malformed}};
    for (const auto& each : cases) {
      const auto reply = [&]() -> Task<> {
        const auto query = co_await server.receive();
        EXPECT_TRUE(query);
        if (!query) co_return;
        const auto message = response_of_size(query->buffer, each.first);
        EXPECT_TRUE(co_await server.send(Bytes(message), query->peer));
      };
      const auto both = co_await all(ask(), reply());
      EXPECT_EQ(std::get<0>(both.value()), each.second) << each.first;
    }
  };
  weir::run(*loop_, talk());
}

// All datagrams arrive before the client runs again. It does not read them all.
TEST_F(DnsClientTest, CancelledQueryStopsReadingStrays) {
  const auto talk = [&]() -> Task<> {
    const Context own = co_await this_context();
    CancelSource cancel;
    auto bound = co_await udp::bind(Endpoint::loopback(0));
    udp::Socket server = std::move(bound.value());
    DnsClientOptions options;
    options.servers = {server.local_address()};
    options.timeout = 1h;
    client_.configure(options);
    const auto flood = [&]() -> Task<> {
      const auto query = co_await server.receive();
      EXPECT_TRUE(query);
      if (!query) co_return;
      const std::vector<udp::Outgoing> strays(5, udp::Outgoing{to_bytes("stray"), query->peer});
      EXPECT_TRUE(co_await server.send(strays));
      cancel.cancel();
    };
    const auto ask_cancellably = [&]() -> Task<std::error_code> {
      auto asking = in_context(Context{own.loop, &cancel}, ask());
      co_return co_await std::move(asking);
    };
    const auto both = co_await all(ask_cancellably(), flood());
    EXPECT_EQ(std::get<0>(both.value()), Errc::cancelled);
    EXPECT_EQ(client_.counters().strays.value(), 1U);
  };
  weir::run(*loop_, talk());
}

}  // namespace
}  // namespace weir::dns::dns_client_test
