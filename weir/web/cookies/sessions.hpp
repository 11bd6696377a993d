// Sessions: data of a client that the server keeps from request to request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/json/read.hpp"
#include "weir/json/write.hpp"
#include "weir/task/task.hpp"
#include "weir/web/cookies/cookie_keys.hpp"
#include "weir/web/cookies/session_store.hpp"
#include "weir/web/cookies/set_cookie.hpp"

namespace weir::http {

/// SessionOptions sets the cookie of sessions, and how long they live.
struct SessionOptions {
  /// Name, SameSite and the other attributes of the cookie. The value and the times are not used.
  /// For plain HTTP in a test: `{.name = "session", .secure = false}`.
  SetCookie cookie = {.name = "__Host-session"};
  Duration idle_timeout = std::chrono::minutes(30);  ///< a session without requests ends after it
  Duration lifetime = std::chrono::hours(24);        ///< every session ends after it
  /// Bytes of the data of a session, as JSON. A handler that sets more fails: the client gets 500,
  /// and the log tells the number of bytes.
  std::size_t data_bytes_max = 16 * 1024;
};

namespace detail {

/// The change that a handler has made to a session.
enum class SessionChange : std::uint8_t { none, data, restart, end };

/// The part of Sessions that does not depend on the type of the data.
class SessionCore {
 public:
  /// A session of a request. An empty id: there is none.
  struct Loaded {
    std::string id;
    std::string data;
  };

  SessionCore(SessionStore& store, CookieKeys keys, SessionOptions options);

  /// Finds the session of a request.
  /// Errors: those of the store.
  /// Cancel: passed on to the store.
  Task<Result<Loaded>> load(const Request& request) const;
  /// Saves a change, and adds the cookie to the response. `data` is the JSON of the new data.
  /// Errors: those of the store. Throws std::length_error for too much data.
  /// Cancel: passed on to the store.
  Task<Result<>> save(std::string id, SessionChange change, std::string data,
                      Response& response) const;
  /// Returns the answer to a request whose session cannot be loaded or saved.
  /// Errors: throws std::length_error for data that do not fit into the store.
  static Response failed(std::error_code error);

 private:
  Result<> set(Response& response, std::string id) const;
  Result<> drop(Response& response) const;

  SessionStore& store_;
  CookieKeys keys_;
  SessionOptions options_;
};

}  // namespace detail

template <class T>
class Sessions;

/// The session of a request, whose data is a T: a struct of public fields that JSON can hold. A
/// handler of a `group<http::Session<T>>()` takes it as `const http::Session<T>&`. A Session is a
/// handle: its functions change the session, although the handle is const. Sessions saves the
/// changes when the handler has returned its response, and not those that a streamed body makes
/// later. Several requests of one client may run at the same time. The data of the last one that
/// ends stays then. A copy is the same session. The handler of a WebSocket gets one, and reads the
/// data in it; it changes nothing, because the request has ended.
/// Threads: those of the request.
/// Lifetime: that of the request.
template <class T>
class Session {
 public:
  /// Returns the data, or nullptr if the client has no session.
  const T* get() const noexcept { return state_->data ? &*state_->data : nullptr; }
  explicit operator bool() const noexcept { return get() != nullptr; }
  /// The client has a session (asserted by std::optional).
  const T& operator*() const { return state_->data.value(); }
  const T* operator->() const { return &state_->data.value(); }

  /// Sets the data, and keeps the id. A client without a session, or whose session this request has
  /// ended, gets a new one. The data are lost if another request has ended the session meanwhile.
  void set(T data) const {
    state_->data = std::move(data);
    if (state_->change == Change::none) state_->change = Change::data;
    if (state_->change == Change::end) state_->change = Change::restart;
  }
  /// Begins a session with a new id and this data, and ends the one that the client had. Call it
  /// when a user has logged in: an attacker may know the id of the session before.
  void start(T data) const {
    state_->data = std::move(data);
    state_->change = Change::restart;
  }
  /// Ends the session, and makes the client drop its cookie.
  void end() const {
    state_->data.reset();
    state_->change = Change::end;
  }

 private:
  friend class Sessions<T>;
  using Change = detail::SessionChange;
  struct State {
    std::optional<T> data;
    Change change = Change::none;
  };
  Session() : state_(std::make_shared<State>()) {}

  std::shared_ptr<State> state_;
};

/// Sessions is middleware that keeps a Session<T> of each client:
///
///     http::MemorySessionStore store;
///     const http::Sessions<Login> sessions(store, keys);
///     auto group = router.group<http::Session<Login>>("", sessions);
///     group.get("/me", [](const http::Session<Login>& session) { ... });
///
/// The cookie of a session holds a random id of 192 bits, signed by the keys, and the time at which
/// the session ends. An id that this service did not make never reaches the store. The server makes
/// ids only for sessions that a handler begins, so that clients without one hold no memory. A
/// response that sets the cookie gets "Cache-Control: no-store" if it has no Cache-Control.
///
/// A failing store answers 503, before the handler or instead of its response. Data that are too
/// large for data_bytes_max or for the store are a fault of the program: Sessions throws
/// std::length_error, which is answered with 500. Data of another form than T, such as those of an
/// older version, count as no session.
/// Threads: any core.
/// Lifetime: the store outlives the router.
template <class T>
class Sessions {
 public:
  /// Errors: throws std::invalid_argument if the cookie's name or attributes are invalid.
  Sessions(SessionStore& store, CookieKeys keys, SessionOptions options = {})
      : core_(std::make_shared<const detail::SessionCore>(store, std::move(keys),
                                                          std::move(options))) {}

  /// Handles a request; see Router::group().
  /// Cancel: passed on to the store and the handler.
  Task<Response> operator()(Request& request, Next next) const {
    return handle(core_, request, next);
  }

 private:
  static Task<Response> handle(std::shared_ptr<const detail::SessionCore> core, Request& request,
                               Next next) {
    auto loaded = co_await core->load(request);
    if (!loaded) co_return detail::SessionCore::failed(loaded.error());
    const Session<T>& session = request.set(Session<T>());
    auto& state = *session.state_;
    if (!loaded->id.empty()) {
      if (auto data = json::read<T>(loaded->data)) {
        state.data = std::move(*data);
      } else {
        state.change = detail::SessionChange::end;
      }
    }
    Response response = co_await next(request);
    if (state.change == detail::SessionChange::none) co_return response;
    std::string data;
    if (state.data) json::write_to(data, *state.data);
    const auto saved =
        co_await core->save(std::move(loaded->id), state.change, std::move(data), response);
    if (!saved) co_return detail::SessionCore::failed(saved.error());
    co_return response;
  }

  std::shared_ptr<const detail::SessionCore> core_;
};

}  // namespace weir::http
