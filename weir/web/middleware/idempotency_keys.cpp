#include "weir/web/middleware/idempotency_keys.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/text/detail/hash.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/syntax/detail/authority.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/http/syntax/parse_error.hpp"
#include "weir/http/syntax/status_category.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/task/context.hpp"
#include "weir/web/auth/authenticated_user.hpp"
#include "weir/web/auth/json_web_token.hpp"
#include "weir/web/clients/client_address.hpp"
#include "weir/web/middleware/detail/idempotency_store.hpp"

namespace weir::http {
namespace {

constexpr std::size_t key_size_max = 255;

/// Returns the key of a request, without the quotes of a structured field; empty if it is invalid.
std::string_view key_of(const RequestHead& head, std::string_view name) noexcept {
  std::optional<std::string_view> key;
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (!equals_ignoring_case(field.name, name)) continue;
    if (key) return {};
    key = field.value;
  }
  std::string_view text = key.value_or("");
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  const bool valid = text.size() <= key_size_max && std::ranges::all_of(text, [](char each) {
                       return each > ' ' && each <= '~' && each != '"' && each != '\\';
                     });
  return valid ? text : std::string_view();
}

/// Appends a part so that no two lists of parts have the same text.
void append_part(std::string& out, std::string_view part) {
  out.append(std::to_string(part.size())).append(":").append(part);
}

/// Appends the values of all headers of this name.
void append_headers(std::string& out, const RequestHead& head, std::string_view name) {
  append_part(out, name);
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField field = head.header_at(index);
    if (equals_ignoring_case(field.name, name)) append_part(out, field.value);
  }
}

/// Appends a host and its port, each host in its one normal form. The default port of the scheme
/// is no port (RFC 9110 §4.2.3).
void append_host(std::string& out, std::string_view authority, bool is_https) {
  const auto parsed = parse_authority(authority);
  append_part(out, parsed ? dns::normal_host(parsed->host) : std::string(authority));
  const std::uint16_t default_port = is_https ? 443 : 80;
  const std::uint16_t port = parsed ? parsed->port.value_or(default_port) : default_port;
  append_part(out, port == default_port ? std::string() : std::to_string(port));
}

/// The owner of a key.
struct KeyOwner {
  std::string name;   ///< equal keys of two names are different
  std::string store;  ///< the owner in the store; one for all clients whom nothing has proved
};

/// Returns an owner by these parts, with a place of its own in the store.
KeyOwner make_owner(std::initializer_list<std::string_view> parts) {
  std::string name;
  for (const std::string_view each : parts) append_part(name, each);
  return {name, name};
}

/// Returns the owner of the keys of a request; std::nullopt if nothing tells it.
std::optional<KeyOwner> owner_of(const Request& request, const IdempotencyOptions& options) {
  if (options.user) {
    const std::optional<std::string> user = options.user(request);
    if (!user) return std::nullopt;
    return make_owner({"option", *user});
  }
  // A client may renew its token between a request and its repetition, but not its name.
  if (const auto* const user = request.get<AuthenticatedUser>(); user && !user->name.empty()) {
    return make_owner({"user", user->name});
  }
  if (const auto* const claims = request.get<JwtClaims>(); claims && !claims->subject.empty()) {
    return make_owner({"subject", claims->issuer, claims->subject});
  }
  const RequestHead& head = request.head();
  const TlsPeer* const peer = request.tls() != nullptr ? request.tls()->peer.get() : nullptr;
  if (peer == nullptr && !head.header("Authorization") && !head.header("Cookie")) {
    return std::nullopt;
  }
  // A client can invent headers, but no certificate, so the headers make no owner in the store.
  KeyOwner owner = make_owner({"headers"});
  if (peer != nullptr) {
    owner = make_owner({"peer", to_text(std::as_bytes(std::span(peer->fingerprint)))});
  }
  append_headers(owner.name, head, "Authorization");
  append_headers(owner.name, head, "Cookie");
  return owner;
}

/// Returns true for an error by which a handler says that it has done nothing. Other errors, such
/// as a lost connection, a timeout or a cancellation, leave the effect open.
bool says_nothing_was_done(std::error_code cause) noexcept {
  constexpr Errc rejected[] = {Errc::bad_input, Errc::limit_reached, Errc::not_found,
                               Errc::conflict, Errc::unsupported};
  const auto is_cause = [cause](Errc each) { return cause == each; };
  return std::ranges::any_of(rejected, is_cause) || StatusCategory::of(cause) != nullptr ||
         cause.category() == parse_error_category();
}

/// The effect of a request that has a response.
enum class Effect : std::uint8_t {
  none,     ///< the handler did not act, so the client may use the key again
  done,     ///< the response tells it, and can be kept
  unknown,  ///< a repetition must not run, and nothing can be told
};

/// Returns true for a 503 that tells the client to send the request again. A reverse proxy answers
/// so to a request that no upstream has processed.
bool invites_repetition(const Response& response) noexcept {
  return response.status() == Status::service_unavailable &&
         response.headers().contains("Retry-After");
}

/// Returns true for a status that says that the handler did not act. From 500 on, only a 503 with
/// Retry-After says so.
bool is_rejection(const Response& response) {
  constexpr Status rejections[] = {Status::bad_request,
                                   Status::unauthorized,
                                   Status::forbidden,
                                   Status::not_found,
                                   Status::method_not_allowed,
                                   Status::request_timeout,
                                   Status::conflict,
                                   Status::length_required,
                                   Status::content_too_large,
                                   Status::unsupported_media_type,
                                   Status::misdirected_request,
                                   Status::unprocessable_content,
                                   Status::too_early,
                                   Status::too_many_requests};
  return invites_repetition(response) ||
         std::ranges::find(rejections, response.status()) != std::end(rejections);
}

/// `cancelled` is true if the request was cancelled while its handler ran.
Effect effect_of(const Response& response, bool cancelled, std::size_t bytes_max) {
  const bool is_open = response.cause() && !says_nothing_was_done(response.cause());
  if (is_open && !invites_repetition(response)) return Effect::unknown;
  if (is_rejection(response)) return cancelled ? Effect::unknown : Effect::none;
  const Body& body = response.body();
  const bool is_whole = !body.is_stream() || StoredResponse::has_empty_stream(response);
  const bool can_be_kept = is_whole && !body.is_upgrade() && body.text().size() <= bytes_max &&
                           response.invalid_header().empty();
  const bool tells_it = response.status() < Status::internal_error;
  return can_be_kept && tells_it ? Effect::done : Effect::unknown;
}

/// The key of a request that runs. A request that ends without a word, because it was cancelled or
/// its handler threw, leaves the effect of the key unknown.
class ClaimedKey {
 public:
  ClaimedKey(IdempotencyStore& store, const Hash128& key, const Loop& loop) noexcept
      : store_(&store), key_(key), loop_(loop) {}
  ClaimedKey(const ClaimedKey&) = delete;
  ClaimedKey& operator=(const ClaimedKey&) = delete;
  ~ClaimedKey() {
    if (store_ != nullptr) store_->lose(key_, loop_.now());
  }
  void finish(IdempotencyStore::Stored response) noexcept {
    std::exchange(store_, nullptr)->finish(key_, std::move(response), loop_.now());
  }
  void release() noexcept { std::exchange(store_, nullptr)->release(key_); }

 private:
  IdempotencyStore* store_;
  Hash128 key_;
  const Loop& loop_;
};

/// The parts of a request with a key.
struct KeyParts {
  const KeyOwner& owner;
  std::string_view name;  // of the key
  std::string_view body;
};

/// Returns the hashes of a request. The host belongs to the key, because each host of a service has
/// its own effects.
IdempotencyStore::KeyedRequest identify(const Request& request, const KeyParts& of,
                                        std::uint64_t seed) {
  IdempotencyStore::KeyedRequest keyed;
  keyed.owner = hash_bytes(of.owner.store, seed);
  std::string parts;
  append_part(parts, of.owner.name);
  const bool is_https = is_secure(request);
  append_host(parts, request.authority(), is_https);
  const auto* const client = request.get<ClientAddress>();
  append_host(parts, client != nullptr ? client->host : std::string_view(), is_https);
  append_part(parts, of.name);
  keyed.key = hash_bytes(parts, seed);
  parts.clear();
  append_part(parts, request.method_text());
  // The absolute form of the target has the host too, in any of its spellings.
  append_part(parts, request.path_text());
  append_part(parts, request.head().has_query() ? "?" : "");
  append_part(parts, request.query_text());
  append_headers(parts, request.head(), "Content-Type");
  append_headers(parts, request.head(), "Content-Encoding");
  append_part(parts, of.body);
  keyed.fingerprint = hash_bytes(parts, seed);
  return keyed;
}

/// Returns the response to a request that must not run, or nothing.
std::optional<Response> answer_without_handler(const IdempotencyStore::Claim& claim) {
  using State = IdempotencyStore::State;
  switch (claim.state) {
    case State::claimed:
      return std::nullopt;
    case State::known: {
      Response response = claim.response->replay();
      response.set_header("Idempotency-Replayed", "true");
      return response;
    }
    case State::other_request:
      return problem(Status::unprocessable_content,
                     "the idempotency key belongs to another request");
    case State::in_progress: {
      Response response = problem(Status::conflict, "a request with this idempotency key runs");
      response.set_header("Retry-After", "1");
      return response;
    }
    case State::unknown:
      return problem(Status::conflict,
                     "a request with this idempotency key has run, and its outcome is unknown");
    case State::full:
      break;
  }
  Response response = problem(Status::service_unavailable);
  response.set_header("Retry-After", "1");
  return response;
}

}  // namespace

IdempotencyKeys::IdempotencyKeys(IdempotencyOptions options)
    : options_(std::make_shared<const IdempotencyOptions>(std::move(options))),
      store_(std::make_shared<IdempotencyStore>(
          IdempotencyLimits{options_->lifetime, options_->entries_max, options_->bytes_max})) {}

Task<Response> IdempotencyKeys::operator()(Request& request, Next next) const {
  const bool applies =
      std::ranges::find(options_->methods, request.method()) != options_->methods.end();
  if (!applies || (!options_->required && !request.header(options_->header))) return next(request);
  return answer(request, next);
}

Task<Response> IdempotencyKeys::answer(Request& request, Next next) const {
  const std::string_view name = key_of(request.head(), options_->header);
  if (name.empty()) {
    co_return problem(Status::bad_request, "the request needs one valid " + options_->header);
  }
  const std::optional<KeyOwner> owner = owner_of(request, *options_);
  if (!owner) {
    co_return problem(Status::bad_request, "the request does not say whose " + options_->header +
                                               " it has, by Authorization or Cookie");
  }
  const auto body = co_await request.body_view();
  if (!body) co_return Response(body.error());
  Loop* const loop = request.loop();
  assert(loop != nullptr && "idempotency keys need the clock of a server");
  const auto keyed = identify(request, {*owner, name, *body}, store_->seed(*loop));
  const auto claim = store_->claim(keyed, loop->now());
  if (auto answer = answer_without_handler(claim)) co_return std::move(*answer);
  ClaimedKey claimed(*store_, keyed.key, *loop);
  Response response = co_await next(request);
  const Context context = co_await this_context();
  switch (effect_of(response, context.cancelled(), options_->response_bytes_max)) {
    case Effect::none:
      claimed.release();
      break;
    case Effect::done:
      claimed.finish(std::make_shared<const StoredResponse>(response));
      break;
    case Effect::unknown:
      break;  // as without a response
  }
  co_return response;
}

}  // namespace weir::http
