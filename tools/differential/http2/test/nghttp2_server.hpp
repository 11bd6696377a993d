// A server of nghttp2, with which the differential test compares Weir.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tools/differential/http2/test/reading.hpp"

struct nghttp2_session;

namespace weir::differential {

/// Reads the bytes of a client. It has the limits of Weir, and rejects a request with an invalid
/// field instead of ignoring the field.
class Nghttp2Server {
 public:
  /// `answers`: true if the server answers each request with 200, immediately after its end.
  explicit Nghttp2Server(bool answers);
  ~Nghttp2Server();
  Nghttp2Server(const Nghttp2Server&) = delete;
  Nghttp2Server& operator=(const Nghttp2Server&) = delete;

  /// Reads a piece and drops the answer.
  void read(std::string_view piece);
  const Reading& reading() const noexcept { return reading_; }
  /// Returns the fields and the body of a stream so far; nullptr if it has none.
  const ParsedRequest* request(std::uint32_t stream) const;

 private:
  struct Callbacks;
  struct Request {
    ParsedRequest parsed;
    bool in_trailers = false;
  };

  void end(std::int32_t stream);

  bool answers_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Request> requests_;
  Reading reading_;
};

}  // namespace weir::differential
