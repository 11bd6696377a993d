// Sends random conversations of HTTP/2 to Weir and to nghttp2, in pieces that begin and end
// anywhere. Both accept the same requests, with the same fields, and refuse the same ones with the
// same errors, except for the rows of known_difference(). ./dev differential runs more of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/differential/http2/test/conversation.hpp"
#include "tools/differential/http2/test/nghttp2_server.hpp"
#include "tools/differential/http2/test/reading.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/test/h2_connection_fixture.hpp"
#include "weir/task/sleep.hpp"

namespace weir::differential::http2_differential_test {
namespace {

std::uint32_t number_of(const char* variable, std::uint32_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

/// Returns the text of a request, or the error of its body.
Task<Result<std::string>> text_of(http::Request& request) {
  ParsedRequest parsed;
  parsed.method = request.head().method_text();
  parsed.target = request.head().target();
  for (std::size_t at = 0; at < request.head().header_count(); ++at) {
    const http::HeaderField field = request.head().header_at(at);
    parsed.add(field.name, field.value);
  }
  const auto body = co_await request.body();
  if (!body) co_return fail(body.error());
  parsed.body = *body;
  for (const http::HeaderField each : request.trailers()) {
    parsed.trailers.emplace_back(each.name, each.value);
  }
  co_return parsed.text();
}

/// Reads the frames that Weir sends.
class WeirReading {
 public:
  void read(std::string_view sent) {
    Bytes rest = to_bytes(sent);
    for (;;) {
      const http::FrameEvent event = reader_.next(rest);
      rest = rest.subspan(event.consumed);
      switch (event.kind) {
        case http::FrameEvent::Kind::need_more:
          return;
        case http::FrameEvent::Kind::block:
          EXPECT_TRUE(event.first && event.last);
          read_head(event);
          break;
        case http::FrameEvent::Kind::reset:
          // A request that Weir answers before its end is reset with NO_ERROR.
          if (auto& reset = reading.streams[event.stream].reset;
              !reset && event.error != http::H2Error::no_error) {
            reset = event.value;
          }
          break;
        case http::FrameEvent::Kind::goaway:
          reading.failed = static_cast<std::uint32_t>(event.error);
          break;
        case http::FrameEvent::Kind::ping:
          ++reading.pings;
          break;
        case http::FrameEvent::Kind::stream_error:
        case http::FrameEvent::Kind::connection_error:
          ADD_FAILURE() << "Weir sends an invalid frame";
          return;
        default:
          break;
      }
    }
  }

  Reading reading;

 private:
  void read_head(const http::FrameEvent& event) {
    StreamOutcome& outcome = reading.streams[event.stream];
    http::HpackDecoder decoder(table_, event.bytes, 65'536, scratch_);
    for (;;) {
      const http::HpackDecoder::Step step = decoder.next();
      EXPECT_NE(step, http::HpackDecoder::Step::error);
      if (step != http::HpackDecoder::Step::field) return;
      const auto& field = decoder.field();
      if (field.name == "x-request") outcome.request = " " + std::string(field.value);
      if (field.name != ":status") continue;
      const int status = std::stoi(std::string(field.value));
      if (status >= 300) outcome.rejected = status;
    }
  }

  http::FrameReader reader_;
  http::HpackTable table_;
  std::vector<char> scratch_ = std::vector<char>(http::HpackDecoder::scratch_size(65'536));
};

/// Facts of an input that explain differences.
struct InputFacts {
  bool incomplete = false;         ///< ends within a frame or a field block
  bool interrupted = false;        ///< has another frame within a field block
  bool lower_stream = false;       ///< opens a stream below an earlier one
  bool long_continuation = false;  ///< has CONTINUATION beyond the largest frame
  bool goaway_stream = false;      ///< has a GOAWAY with a stream of the server
  bool window_of_0 = false;        ///< has a WINDOW_UPDATE of 0
  bool second_ack = false;         ///< acknowledges SETTINGS twice
  bool repeated_setting = false;   ///< has SETTINGS with two values of one setting
  bool priority_update = false;    ///< has PRIORITY_UPDATE
  bool self_dependency = false;    ///< has HEADERS whose priority names their own stream
  bool long_padding = false;       ///< has DATA with more padding than payload
  bool reset = false;              ///< has RST_STREAM
};

/// Finds the facts of an input, frame by frame.
class FactFinder {
 public:
  InputFacts read(std::string_view input) {
    input.remove_prefix(http::H2Session::client_preface.size());
    while (input.size() >= http::frame_header_size) {
      const std::size_t size = http::frame_header_size + number(input, 3);
      begin_frame(static_cast<http::FrameType>(input[3]), size, number(input.substr(5), 4));
      if (input.size() < size) break;
      const auto flags = static_cast<std::uint8_t>(input[4]);
      end_frame(flags, input.substr(http::frame_header_size, size - http::frame_header_size));
      input.remove_prefix(size);
    }
    facts_.incomplete = !input.empty() || open_block_ != 0;
    return facts_;
  }

 private:
  static std::uint32_t number(std::string_view bytes, std::size_t count) {
    std::uint32_t value = 0;
    for (const char each : bytes.substr(0, count)) {
      value = value << 8U | static_cast<unsigned char>(each);
    }
    return value;
  }

  void begin_frame(http::FrameType type, std::size_t size, std::uint32_t stream) {
    type_ = type;
    stream_ = stream & http::stream_id_max;
    const bool continues = type == http::FrameType::continuation;
    facts_.interrupted |= open_block_ != 0 && (!continues || stream_ != open_block_);
    facts_.long_continuation |=
        continues && size > http::frame_header_size + http::frame_payload_default;
  }

  void end_frame(std::uint8_t flags, std::string_view payload) {
    const bool ends_block = (flags & http::FrameFlag::end_headers) != 0;
    const std::uint32_t first = number(payload, 4) & http::stream_id_max;
    switch (type_) {
      case http::FrameType::data:
        facts_.long_padding |= (flags & http::FrameFlag::padded) != 0 &&
                               (payload.empty() || number(payload, 1) >= payload.size());
        break;
      case http::FrameType::headers:
        if ((flags & http::FrameFlag::priority) != 0) {
          const std::size_t at = (flags & http::FrameFlag::padded) != 0 ? 1 : 0;
          if (payload.size() >= at + 5) {
            const std::uint32_t parent = number(payload.substr(at), 4) & http::stream_id_max;
            facts_.self_dependency |= parent == stream_;
          }
        }
        facts_.lower_stream |= stream_ < highest_ && !opened_.contains(stream_);
        highest_ = std::max(highest_, stream_);
        opened_.insert(stream_);
        open_block_ = ends_block ? 0 : stream_;
        break;
      case http::FrameType::continuation:
        if (ends_block) open_block_ = 0;
        break;
      case http::FrameType::goaway:
        facts_.goaway_stream |= first != 0;
        break;
      case http::FrameType::window_update:
        facts_.window_of_0 |= first == 0;
        break;
      case http::FrameType::settings:
        if ((flags & http::FrameFlag::ack) != 0) facts_.second_ack = std::exchange(acked_, true);
        read_settings(payload);
        break;
      case http::FrameType::rst_stream:
        facts_.reset = true;
        break;
      case http::FrameType::priority_update:
        facts_.priority_update = true;
        break;
      default:
        break;
    }
  }

  void read_settings(std::string_view payload) {
    std::set<std::uint32_t> seen;
    for (; payload.size() >= 6; payload.remove_prefix(6)) {
      facts_.repeated_setting |= !seen.insert(number(payload, 2)).second;
    }
  }

  InputFacts facts_;
  http::FrameType type_ = {};
  std::uint32_t stream_ = 0;
  std::uint32_t highest_ = 0;
  std::uint32_t open_block_ = 0;
  std::set<std::uint32_t> opened_;
  bool acked_ = false;
};

/// One comparison.
struct Case {
  std::string_view kind;
  const InputFacts& facts;
  const Nghttp2Server& server;
  const Reading& weir;
  const Reading& nghttp2;
};

bool consists_of(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [others](char each) {
    const bool letter = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z');
    return letter || (each >= '0' && each <= '9') || others.find(each) != others.npos;
  });
}

bool is_valid_target(std::string_view target) {
  for (std::size_t at = 0; (at = target.find('%', at)) != target.npos; ++at) {
    const std::string_view digits = target.substr(at + 1, 2);
    if (digits.find_first_not_of("0123456789abcdefABCDEF") != digits.npos) return false;
    if (digits.size() < 2 || digits == "00") return false;
  }
  return consists_of(target, "-._~!$&'()*+,;=:@/?%");
}

/// Returns the rule of Weir, for HTTP/1.1 and HTTP/2, that the request breaks and that nghttp2
/// leaves to its user. Returns an empty text if the request breaks no such rule.
std::string_view stricter_rule(const ParsedRequest& request) {
  constexpr std::array<std::string_view, 7> served{"GET",    "HEAD",  "POST",   "PUT",
                                                   "DELETE", "PATCH", "OPTIONS"};
  constexpr std::array<std::string_view, 4> no_trailers{"expect", "host", "te", "trailer"};
  const auto is_unknown_expect = [](const auto& field) {
    return field.first == "expect" && field.second != "100-continue";
  };
  if (std::ranges::find(served, request.method) == served.end()) return "Weir: unknown method";
  if (request.scheme != "http" && request.scheme != "https") return "Weir: unknown scheme";
  if (!is_valid_target(request.target)) return "Weir: invalid target";
  if (request.several_hosts) return "Weir: another Host";
  if (!consists_of(request.host, "-.:[]")) return "Weir: invalid Host";
  const std::size_t colon = request.host.rfind(':');
  if (colon != request.host.npos &&
      request.host.find_first_not_of("0123456789", colon + 1) != request.host.npos) {
    return "Weir: invalid Host";
  }
  if (std::ranges::any_of(request.fields, is_unknown_expect)) return "Weir: unknown Expect";
  for (const auto& [name, value] : request.trailers) {
    if (std::ranges::find(no_trailers, name) != no_trailers.end()) return "Weir: not for trailers";
  }
  return {};
}

/// Returns a reason why the outcomes of a stream may differ, or an empty text.
std::string_view known_difference(const Case& each, std::uint32_t id, const StreamOutcome& weir,
                                  const StreamOutcome& nghttp2) {
  if (weir.rejected != 0 && nghttp2.reset == 1U) return "Weir answers 4xx instead of a reset";
  if (each.kind == "trailers" && weir.reset == 5U && nghttp2.reset == 1U) {
    return "Weir meets a frame behind such trailers before its answer";
  }
  if (nghttp2.reset && each.facts.incomplete) return "nghttp2 judges a frame before its end";
  const bool late = weir.reset == 5U || (weir.reset == 1U && each.facts.window_of_0);
  if (late && !nghttp2.reset && weir.request == nghttp2.request) {
    return "nghttp2 ignores frames on a closed stream";
  }
  if (weir.reset == 1U && each.facts.self_dependency) return "nghttp2 does not check priorities";
  const ParsedRequest* const request = each.server.request(id);
  const bool refuses = weir.rejected != 0 || weir.reset == 1U;
  if (refuses && !nghttp2.reset && request != nullptr) return stricter_rule(*request);
  return {};
}

std::string_view known_difference_of_streams(const Case& each) {
  std::map<std::uint32_t, std::pair<StreamOutcome, StreamOutcome>> all;
  for (const auto& [id, stream] : each.weir.streams) all[id].first = stream;
  for (const auto& [id, stream] : each.nghttp2.streams) all[id].second = stream;
  std::string_view why = "none";
  for (const auto& [id, both] : all) {
    if (both.first == both.second) continue;
    const std::string_view of_stream = known_difference(each, id, both.first, both.second);
    if (of_stream.empty()) return {};
    why = of_stream;
  }
  return why;
}

bool is_one_of(std::uint32_t code, std::initializer_list<http::H2Error> all) {
  return std::ranges::find(all, static_cast<http::H2Error>(code)) != all.end();
}

/// Returns a reason why only nghttp2 may have ended the connection, or an empty text.
std::string_view known_failure_of_nghttp2(const Case& each) {
  for (const auto& [id, stream] : each.weir.streams) {
    if (stream.rejected == 0 && !stream.reset) continue;
    if (stream.reset == each.nghttp2.failed) return "nghttp2 ends the connection, not the stream";
    if (each.nghttp2.failed != 5U) continue;
    const auto other = each.nghttp2.streams.find(id);
    if (other != each.nghttp2.streams.end() && other->second.reset == 1U) {
      return "nghttp2 does not ignore frames on a stream that it has reset";
    }
    const ParsedRequest* const request = each.server.request(id);
    const std::string_view rule = request == nullptr ? "" : stricter_rule(*request);
    if (!rule.empty()) return rule;
  }
  if (each.facts.second_ack) return "nghttp2 refuses to be acknowledged twice";
  return each.facts.incomplete ? "nghttp2 judges a frame before its end" : "";
}

/// Returns a reason why only Weir may have ended the connection, or an empty text.
std::string_view known_failure_of_weir(const Case& each) {
  const auto is_window_error = [](const auto& stream) { return stream.second.reset == 3U; };
  if (each.weir.failed == 3U && std::ranges::any_of(each.nghttp2.streams, is_window_error)) {
    return "nghttp2 resets the streams whose windows SETTINGS makes too large";
  }
  if (each.weir.failed == 6U && each.facts.long_continuation) {
    return "nghttp2 accepts CONTINUATION of any length";
  }
  if (each.facts.repeated_setting) return "nghttp2 reads only the last value of a setting";
  if (each.facts.long_padding) return "nghttp2 ignores frames on a closed stream";
  if (each.facts.priority_update) return "nghttp2 does not know PRIORITY_UPDATE";
  return each.facts.lower_stream ? "nghttp2 ignores a new stream below an earlier one" : "";
}

/// Returns a reason why the readings may differ, "none" if they do not, and otherwise an empty
/// text.
std::string_view known_difference(const Case& each) {
  const auto& [kind, facts, server, weir, nghttp2] = each;
  if (facts.goaway_stream) return "nghttp2 refuses GOAWAY with a stream of the server";
  if (weir.failed && nghttp2.failed) {
    using enum http::H2Error;
    if (weir.failed == nghttp2.failed) return "none";
    const auto of_frame = {protocol_error, frame_size_error, stream_closed};
    const auto of_block = {compression_error, stream_closed};
    for (const auto& errors : {of_frame, of_block}) {
      if (is_one_of(*weir.failed, errors) && is_one_of(*nghttp2.failed, errors)) {
        return "a frame has two errors";
      }
    }
    if (facts.lower_stream) return "a frame has two errors";
    return facts.interrupted || facts.long_continuation ? "nghttp2 judges a frame before its end"
                                                        : "";
  }
  if (weir.failed) return known_failure_of_weir(each);
  if (nghttp2.failed) return known_failure_of_nghttp2(each);
  return weir.pings == nghttp2.pings ? known_difference_of_streams(each) : "";
}

class Http2Differential : public http::H2ConnectionFixture, public ::testing::Test {
 protected:
  /// `answers`: true if the servers answer each request, and false if they keep all streams open.
  void compare(bool answers) {
    answers_ = answers;
    routes_.fallback([this](http::Request& request) -> Task<http::Response> {
      auto read = co_await text_of(request);
      if (!read) co_return http::Response(http::to_status(read.error()));
      http::Response response(http::Status::ok);
      response.set_header("x-request", read->substr(1));
      if (answers_) co_return response;
      requests_.push_back(std::move(*read));
      std::ignore = co_await sleep(std::chrono::hours(1));
      co_return response;
    });
    serve();
    const std::uint32_t seed = number_of("WEIR_TEST_SEED", answers ? 9113 : 7541);
    const std::uint32_t cases = number_of("WEIR_DIFFERENTIAL_CASES", 2'000);
    SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed));
    ConversationMaker maker(seed);
    std::map<std::string_view, unsigned> known;
    unsigned accepted = 0;
    unsigned failures = 0;
    for (std::uint32_t number = 0; number < cases && failures < failures_max; ++number) {
      const Conversation conversation = maker.make();
      std::string input;
      for (const std::string& each : conversation.frames) input += each;
      Nghttp2Server other(answers);
      for (const std::string& each : conversation.frames) other.read(each);
      Reading nghttp2 = other.reading();
      Reading weir = read_by_weir(conversation, maker);
      if (!weir.failed) ++accepted;
      const InputFacts facts = FactFinder().read(input);
      if (!answers) use_requests(weir, nghttp2, facts);
      const std::string_view why =
          known_difference({conversation.kind, facts, other, weir, nghttp2});
      ++known[why];
      if (!why.empty()) continue;
      ++failures;
      ADD_FAILURE() << "case " << number << ", " << conversation.kind << ": "
                    << testing::PrintToString(input.substr(http::frames::preface().size()))
                    << "\nWeir:\n"
                    << weir.text() << "nghttp2:\n"
                    << nghttp2.text();
    }
    for (const auto& [why, count] : known) {
      std::printf("%6u cases: %s\n", count, std::string(why).c_str());
    }
    EXPECT_GT(accepted, cases / 10);
  }

 private:
  static constexpr unsigned failures_max = 20;

  /// Sends the conversation in pieces that are cut anywhere. If the server answers, each frame
  /// follows its answer to the previous frame.
  Reading read_by_weir(const Conversation& conversation, ConversationMaker& maker) {
    WeirReading reading;
    peer_ = &connect();
    requests_.clear();
    std::vector<std::string> pieces = conversation.frames;
    if (!answers_) pieces = {std::accumulate(pieces.begin(), pieces.end(), std::string())};
    const std::uint32_t most = maker.below(3) == 0 ? 100'000 : 1 + maker.below(40);
    for (const std::string& each : pieces) {
      for (std::size_t at = 0; at < each.size();) {
        const std::string piece = each.substr(at, 1 + maker.below(most));
        at += piece.size();
        send(reading, piece);
      }
    }
    peer_->reset();
    settle();
    return std::move(reading.reading);
  }
  void send(WeirReading& reading, std::string_view piece) {
    reading.read(talk(*peer_, piece));
    for (std::string bytes(1, 'x'); !bytes.empty();) {
      settle();  // the server goes on when the client has read
      bytes = peer_->take();
      reading.read(bytes);
    }
  }
  /// Compares the requests of a server that does not answer, and removes them from the outcomes.
  /// The handlers of streams that were reset may not have run.
  void use_requests(Reading& weir, Reading& nghttp2, const InputFacts& facts) {
    std::vector<std::string> others;
    bool all_run = !weir.failed && !nghttp2.failed && !facts.reset && !facts.goaway_stream;
    for (const auto& [id, stream] : weir.streams) all_run = all_run && stream == StreamOutcome{};
    for (const auto& [id, stream] : nghttp2.streams) {
      if (stream.request) others.push_back(*stream.request);
      all_run = all_run && !stream.reset;
    }
    for (auto& [id, stream] : nghttp2.streams) stream.request.reset();
    if (!all_run) return;
    std::ranges::sort(others);
    std::ranges::sort(requests_);
    EXPECT_EQ(requests_, others);
  }

  bool answers_ = true;
  std::vector<std::string> requests_;
};

TEST_F(Http2Differential, ReadsAsNghttp2WhenItAnswers) {
  compare(true);
}
TEST_F(Http2Differential, ReadsAsNghttp2WhenItWaits) {
  compare(false);
}

}  // namespace
}  // namespace weir::differential::http2_differential_test
