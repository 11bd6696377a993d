// The request that a handler receives: its complete head, and its body as it arrives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/detail/type_name.hpp"
#include "weir/base/result.hpp"
#include "weir/http/message/body_length.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/syntax/method.hpp"
#include "weir/http/syntax/status.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir {
class Loop;
class Scope;
}  // namespace weir

namespace weir::http {

class Request;
class RouteMatch;
struct Route;

/// The version of HTTP that carries a message.
enum class Version : std::uint8_t { http_1_0, http_1_1, http_2 };

/// The source of a request's body. The connection implements it, and so does middleware that
/// changes the body. A source gives the bytes by collect() and by read_piece(). This class has the
/// rule for both together: read() returns the text that read_all() has collected, once.
class BodySource {
 public:
  virtual ~BodySource() = default;
  /// Returns the next bytes of the body; empty at its end and in all later calls. After a call of
  /// read_all(), the next bytes are the collected text, in one piece. A handler may therefore read
  /// a body that middleware has collected.
  /// Errors: those of Request::body().
  /// Cancel: no data is lost.
  /// Lifetime: the bytes are valid until the next call.
  Task<Result<Bytes>> read() {
    if (reading_ >= Reading::whole) return read_collected();
    reading_ = Reading::pieces;
    return read_piece();
  }
  /// Returns the rest of the body as one view, without a copy if the body has arrived in one
  /// piece. Later calls return the same text.
  /// Errors: those of Request::body().
  /// Cancel: the rest of the body can still be read.
  /// Lifetime: the view is valid as long as the request's head.
  Task<Result<std::string_view>> read_all() {
    if (reading_ < Reading::whole) reading_ = Reading::whole;
    return collect();
  }
  /// Returns true if read() or read_all() was called.
  bool was_read() const noexcept { return reading_ != Reading::none; }
  /// Returns the length of the whole body, which a read does not change. A source that changes the
  /// bytes of another one returns the length of its own bytes.
  virtual BodyLength length() const noexcept { return BodyLength::unknown(); }
  virtual const Headers& trailers() const noexcept = 0;
  virtual os::Address peer_address() const = 0;
  virtual const TlsInfo* tls() const noexcept { return nullptr; }
  virtual bool is_http2() const noexcept { return false; }
  /// Returns an address that the sources of one connection to a client share, and those of others
  /// do not have. It identifies the client to what its requests share with those of others.
  virtual const void* connection() const noexcept { return this; }
  /// Returns true if the source has removed the coding that Content-Encoding names.
  virtual bool is_decoded() const noexcept { return false; }
  /// Returns the source of the bytes as the client has sent them: another one if this source
  /// removes a coding and has read nothing yet.
  virtual BodySource& coded() noexcept { return *this; }

 protected:
  /// Begins another body, of which nothing was read.
  void forget_reads() noexcept { reading_ = Reading::none; }
  /// Returns the next bytes of the body, as read() does. It is not called after collect().
  /// Errors: those of Request::body().
  /// Cancel: no data is lost.
  /// Lifetime: the bytes are valid until the next call.
  virtual Task<Result<Bytes>> read_piece() = 0;
  /// Returns the rest of the body, as read_all() does; the same text in each call.
  /// Errors: those of Request::body().
  /// Cancel: the rest of the body can still be collected.
  /// Lifetime: the view is valid as long as the request's head.
  virtual Task<Result<std::string_view>> collect() = 0;

 private:
  /// What was asked for.
  enum class Reading : std::uint8_t {
    none,        ///< nothing
    pieces,      ///< pieces only
    whole,       ///< the whole, which read() has not returned
    whole_read,  ///< the whole, which read() has returned too
  };
  Task<Result<Bytes>> read_collected();

  Reading reading_ = Reading::none;
};

/// The response to a request that has ended; see Request::on_end().
struct SentResponse {
  /// Status of the head that was sent. Without a head, it is that of the response that could not be
  /// sent.
  Status status = Status::ok;
  /// Number of bytes of the body that were handed to the connection, without framing.
  std::uint64_t body_bytes = 0;
  /// True if the whole response was handed to the connection.
  bool complete = false;
};

namespace detail {

class RequestOwner;

/// The functions of Request::on_end(). It needs no memory while there are none.
/// Threads: those of the request.
class EndObservers {
 public:
  EndObservers() noexcept {}
  EndObservers(const EndObservers&) = delete;
  EndObservers& operator=(const EndObservers&) = delete;
  ~EndObservers() {
    while (newest_ != nullptr) destroy_newest();
  }

  /// An element of the list, which call() and then destroy() end.
  struct Link {
    Link* older;
    void (*call)(Link* link, Request& request, const SentResponse& response);
    void (*destroy)(Link* link) noexcept;
  };
  /// Adds an element that lives at least as long as the list.
  void add_link(Link& link) noexcept {
    link.older = newest_;
    newest_ = &link;
  }
  template <class F>
  void add(F function) {
    newest_ = make_block<Node<F>>(newest_, std::move(function)).release();
  }
  bool empty() const noexcept { return newest_ == nullptr; }
  /// Calls each function, the newest first, and destroys it. An exception ends only its function.
  void run(Request& request, const SentResponse& response) noexcept;

 private:
  template <class F>
  struct Node : Link {
    Node(Link* older_link, F of)
        : Link{older_link,
               [](Link* link, Request& request, const SentResponse& response) {
                 static_cast<Node*>(link)->function(request, response);
               },
               [](Link* link) noexcept { BlockPtr<Node>(static_cast<Node*>(link)).reset(); }},
          function(std::move(of)) {}
    F function;
  };
  void destroy_newest() noexcept {
    Link* const link = std::exchange(newest_, newest_->older);
    link->destroy(link);
  }

  Link* newest_ = nullptr;
};

/// The values that middleware has set for one request. It needs no memory while there are none.
/// Threads: those of the request.
class RequestValues {
 public:
  RequestValues() noexcept {}
  RequestValues(const RequestValues&) = delete;
  RequestValues& operator=(const RequestValues&) = delete;
  ~RequestValues() { clear(); }

  template <class T>
  T& add(T value) {
    Node<T>* const node = make_block<Node<T>>(newest_, std::move(value)).release();
    newest_ = node;
    return node->value;
  }
  /// Returns the newest value of this type, or nullptr.
  template <class T>
  T* find() const noexcept {
    for (Link* each = newest_; each != nullptr; each = each->older) {
      if (each->type == &inject::type<T>) return &static_cast<Node<T>*>(each)->value;
    }
    return nullptr;
  }
  /// Destroys the values, the newest first.
  void clear() noexcept {
    while (newest_ != nullptr) {
      Link* const link = std::exchange(newest_, newest_->older);
      link->destroy(link);
    }
  }

 private:
  struct Link {
    const inject::Type* type;
    Link* older;
    void (*destroy)(Link* link) noexcept;
  };
  template <class T>
  struct Node : Link {
    Node(Link* older_link, T of)
        : Link{&inject::type<T>, older_link,
               [](Link* link) noexcept { BlockPtr<Node>(static_cast<Node*>(link)).reset(); }},
          value(std::move(of)) {}
    T value;
  };

  Link* newest_ = nullptr;
};

}  // namespace detail

/// One request. All views that it returns are valid until its response has been sent or has
/// failed.
/// Threads: only those of its core.
/// Lifetime: the server owns it; a handler takes it by reference.
class Request {
 public:
  Request(const RequestHead& head, BodySource& body, const TraceContext* trace = nullptr,
          Loop* loop = nullptr, detail::RequestOwner* owner = nullptr) noexcept
      : head_(head), body_(&body), trace_(trace), loop_(loop), owner_(owner) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  Method method() const noexcept { return head_.method(); }
  std::string_view method_text() const noexcept { return head_.method_text(); }
  /// Returns the decoded path; "*" for OPTIONS *. A '/' in it may be one that was sent as %2F. A
  /// guard belongs to a group of routes (Router::group()) and compares no paths.
  std::string path() const;
  /// Returns the path as it was sent, undecoded; "*" for OPTIONS *.
  std::string_view path_text() const noexcept { return head_.path(); }
  /// Returns the text after the '?', undecoded; empty if there is none.
  std::string_view query_text() const noexcept { return head_.query(); }
  /// Returns the decoded value of the first query parameter called `name`, if there is one.
  std::optional<std::string> query(std::string_view name) const;
  /// Returns host[:port] of an absolute target, or else of the Host header.
  std::string_view authority() const noexcept { return head_.authority(); }
  /// Returns the value of the first header called `name`, compared without case.
  std::optional<std::string_view> header(std::string_view name) const noexcept {
    return head_.header(name);
  }
  const RequestHead& head() const noexcept { return head_; }
  /// Returns the version of HTTP that carries the request. Nothing else differs between them.
  Version version() const noexcept {
    if (body_->is_http2()) return Version::http_2;
    return head_.version_minor() == 0 ? Version::http_1_0 : Version::http_1_1;
  }
  /// Returns the address of the client's end of the connection.
  os::Address peer_address() const { return body_->peer_address(); }
  /// Returns the facts of the TLS connection, such as the client's certificate; nullptr if the
  /// connection is plain.
  const TlsInfo* tls() const noexcept { return body_->tls(); }
  /// Returns the unique id of this request in this service; empty without a server. A Logger adds
  /// it automatically to each record that a task of this request's handler writes. See
  /// Router::trust_id_header().
  std::string id() const;
  /// Returns the pattern of the route that answers, such as "/users/{id}"; empty if the router
  /// itself answers.
  /// Lifetime: that of the route, which outlives the request.
  std::string_view route() const noexcept;
  /// Returns RouteOptions::values_max of the route that answers.
  std::size_t argument_values_max() const noexcept;
  /// Returns the trace context of the request, for middleware that sets its span; nullptr without a
  /// server.
  const TraceContext* trace() const noexcept { return trace_; }
  /// Returns the loop of the server, for its time and its core; nullptr without a server.
  Loop* loop() const noexcept { return loop_; }

  /// Keeps a value for the middleware and the handler that run later: `request.set<User>(user)`. A
  /// handler takes it as `const User&` if its route is in a `group<User>()`; see Router::group().
  /// Returns: the value. Each call keeps one more value, and get() returns the newest.
  /// Lifetime: until the response has been sent or has failed.
  template <class T>
  T& set(T value) {
    return values_.add<T>(std::move(value));
  }
  /// Returns the value that set<T>() has kept, or nullptr.
  template <class T>
  const T* get() const noexcept {
    return values_.find<T>();
  }
  /// Calls `function(Request&, const SentResponse&)` when the response has been handed to the
  /// connection, or when the request has failed. The function added last is called first. It must
  /// not read the body.
  /// Threads: the core of the request.
  template <class F>
  void on_end(F function) {
    end_observers_.add(std::move(function));
  }

  /// Returns the scope of this request. An example of its tasks is one that sends a body:
  /// `client.send(request.scope(), std::move(upload))`. They are cancelled when the handler
  /// returns, or, if its response is that of duplex(), when the function of the response returns.
  /// The request lives until they have ended. A failure of a task is logged.
  /// Only a handler that is a task, or the function that writes the response, calls it (asserted).
  /// Errors: throws std::bad_alloc.
  Scope& scope() const;
  /// Sends an interim response before the response of the handler (RFC 9110 §15.2). An example is
  /// 103 (Early Hints) with its Link headers. A client that waits for 100 gets it only once. A
  /// client of HTTP/1.0 gets none.
  /// Errors: Errc::bad_input for another status than 1xx, for 101, and for headers that the server
  /// sets; Errc::closed if the handler has returned; Errc::unsupported without a server; those of
  /// the connection.
  /// Cancel: not affected; a part of a head would spoil the response behind it.
  Task<Result<>> send_interim(Status status, const Headers& headers = {}) const;

  /// Returns the length of the body that read() gives. It is that of the bytes that middleware has
  /// decoded, and not the one that the header Content-Length names.
  BodyLength body_length() const noexcept { return body_->length(); }
  /// Returns the whole body, or the rest after earlier calls of read(). A client that waits for 100
  /// (Continue) gets it when the handler waits for the body.
  /// Errors: a ParseError (body_too_large above the route's limit, body_timed_out, bad framing),
  /// Errc::end_of_stream or the connection's own error if it breaks, Errc::cancelled, Errc::closed
  /// while a function streams the response. Errc::timed_out means that the client was too slow to
  /// read 100 (Continue). An incomplete body is always an error. See to_status().
  /// Cancel: the rest of the body can still be read.
  Task<Result<std::string>> body();
  /// Returns the same as body(), without a copy if the body arrived in one piece. Both may be
  /// called more than once, and return the same text.
  /// Errors: those of body().
  /// Cancel: the rest of the body can still be read.
  Task<Result<std::string_view>> body_view() { return body_->read_all(); }
  /// Returns the next piece of the body; empty at its end. A text that body() or body_view() has
  /// collected is the next piece, once. A handler may therefore read a body that middleware has
  /// collected. Pieces that read() has returned do not come again.
  /// Errors: those of body().
  /// Cancel: no data is lost; the next call returns the piece.
  /// Lifetime: the piece is valid until the next call.
  Task<Result<Bytes>> read() { return body_->read(); }
  /// Returns the trailer fields after a chunked body; complete once read() has returned the end.
  const Headers& trailers() const noexcept { return body_->trailers(); }

  /// Returns the source of the body, for values of from_request() that read it.
  BodySource& body_source() const noexcept { return *body_; }
  /// Returns true if middleware removes the coding that the header Content-Encoding names.
  bool has_decoded_body() const noexcept { return body_->is_decoded(); }
  /// Replaces the source of the body, for middleware that changes the body, such as a
  /// decompression. The middleware restores the former source before it returns its response.
  /// Returns: the former source.
  /// Lifetime: the bytes of the new source live as long as the views of the request.
  BodySource& exchange_body(BodySource& body) noexcept { return *std::exchange(body_, &body); }

 private:
  friend class Call;
  friend class RouteMatch;

  const RequestHead& head_;
  BodySource* body_;
  const TraceContext* trace_;
  Loop* loop_;
  detail::RequestOwner* owner_;
  const Route* route_ = nullptr;
  detail::RequestValues values_;
  detail::EndObservers end_observers_;
};

}  // namespace weir::http
