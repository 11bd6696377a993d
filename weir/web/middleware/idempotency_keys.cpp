#include "weir/web/middleware/idempotency_keys.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string_view>

#include "weir/base/text/detail/hash.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/loop/loop.hpp"
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

/// Returns true for a status that a repeated request would get as well. The others say that the
/// handler did not act, or that the client may try again.
bool is_kept(Status status) noexcept {
  constexpr Status again[] = {Status::bad_request,
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
  return status < Status::internal_error && std::ranges::find(again, status) == std::end(again);
}

/// Frees the key of a request that ends without a response.
class ClaimedKey {
 public:
  ClaimedKey(IdempotencyStore& store, const Hash128& key) noexcept : store_(&store), key_(key) {}
  ClaimedKey(const ClaimedKey&) = delete;
  ClaimedKey& operator=(const ClaimedKey&) = delete;
  ~ClaimedKey() {
    if (store_ != nullptr) store_->release(key_);
  }
  void finish(IdempotencyStore::Stored response, Instant now) {
    store_->finish(key_, std::move(response), now);
    store_ = nullptr;
  }

 private:
  IdempotencyStore* store_;
  Hash128 key_;
};

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
  const auto body = co_await request.body_view();
  if (!body) co_return Response(body.error());
  Loop* const loop = request.loop();
  assert(loop != nullptr && "idempotency keys need the clock of a server");
  const std::uint64_t seed = store_->seed(*loop);
  std::string parts;
  if (options_->user) {
    append_part(parts, options_->user(request));
  } else {
    append_headers(parts, request.head(), "Authorization");
    append_headers(parts, request.head(), "Cookie");
  }
  append_part(parts, name);
  const Hash128 key = hash_bytes(parts, seed);
  parts.clear();
  append_part(parts, request.method_text());
  append_part(parts, request.head().target());
  append_headers(parts, request.head(), "Content-Type");
  append_headers(parts, request.head(), "Content-Encoding");
  append_part(parts, *body);
  const Hash128 fingerprint = hash_bytes(parts, seed);
  const auto claim = store_->claim(key, fingerprint, loop->now());
  if (auto answer = answer_without_handler(claim)) co_return std::move(*answer);
  ClaimedKey claimed(*store_, key);
  Response response = co_await next(request);
  const bool whole = !response.body().is_stream() && is_kept(response.status()) &&
                     response.body().text().size() <= options_->response_bytes_max;
  if (whole && response.invalid_header().empty()) {
    claimed.finish(std::make_shared<const StoredResponse>(response), loop->now());
  }
  co_return response;
}

}  // namespace weir::http
