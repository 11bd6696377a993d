// A connection that the server answers with 503.
#pragma once

namespace weir::http {

class OpenConnections;
class ServerState;

/// A connection beyond the limit, or an evicted one, while the server answers it with 503.
class Rejection {
 public:
  explicit Rejection(ServerState& server) noexcept;
  ~Rejection();
  Rejection(const Rejection&) = delete;
  Rejection& operator=(const Rejection&) = delete;
  /// Returns true if more than OpenConnections::rejections_max rejected connections still wait for
  /// the peer to read the answer. This connection is then closed directly after its own answer.
  bool too_many() const noexcept;

 private:
  OpenConnections& connections_;
};

}  // namespace weir::http
