// Readers of typed arguments: queries, forms, headers, cookies, and values made from the request.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/detail/function_type.hpp"
#include "weir/http/matching/arguments.hpp"
#include "weir/http/matching/path_params.hpp"
#include "weir/http/message/detail/urlencoded.hpp"
#include "weir/http/message/json.hpp"
#include "weir/http/message/problem.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/http/syntax/detail/char_class.hpp"
#include "weir/json/checked.hpp"
#include "weir/json/detail/codec_object.hpp"
#include "weir/json/detail/field_names.hpp"
#include "weir/json/detail/fields.hpp"
#include "weir/json/detail/text_value.hpp"
#include "weir/json/read.hpp"

namespace weir::http::detail {

/// The parts of one request that do not fit the types of its handler's arguments. The object needs
/// no memory while there are none; see Problem::add_violation() for its limits.
class Violations {
 public:
  bool empty() const noexcept { return problem_ == nullptr; }
  [[gnu::cold]] void add(std::string_view in, std::string_view name, std::string_view detail);
  /// Adds `expected …, found "…"` for the value of a pair. `expected` is a function, so that
  /// callers stay small.
  [[gnu::cold]] void add_unfit(std::string_view in, std::string_view name, const RawPair& pair,
                               std::string (*expected)(std::string_view found));
  /// Adds `expected …` without the value, which may be a secret.
  [[gnu::cold]] void add_unfit_secret(std::string_view in, std::string_view name,
                                      std::string_view found,
                                      std::string (*expected)(std::string_view found));
  /// Returns the problem that names all violations.
  [[gnu::cold]] Response answer(Status status) &&;

 private:
  std::unique_ptr<Problem> problem_;  // one word for callers that have none
};

/// The answer to a request that does not fit, made on the heap because it is rare; else nullptr.
using Rejection = std::unique_ptr<Response>;
inline Rejection reject(Response response) {
  return std::make_unique<Response>(std::move(response));
}

// Single values.

/// True if a T is read from one text: a type with from_path_param(), or one that
/// json::detail::TextValue names.
template <class T>
concept TextArgument = CustomPathParam<T> || json::detail::HasTextValue<T>;

template <TextArgument T>
[[gnu::always_inline]] inline bool read_text(std::string_view text, T& value) {
  if constexpr (CustomPathParam<T>) {
    std::optional<T> made = T::from_path_param(text);
    if (made) value = std::move(*made);
    return made.has_value();
  } else {
    return json::detail::TextValue<T>::read(text, value);
  }
}

/// Returns the description of the texts that fit, for the error of a text that does not.
template <TextArgument T>
std::string expected_text(std::string_view found) {
  if constexpr (CustomPathParam<T>) {
    return "another text";
  } else {
    return json::detail::expected_instead_of<T>(found);
  }
}

// Queries and forms.

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

/// The type of the single values of a field: T of a std::optional<T> and of a std::vector<T>.
template <class Field>
struct ValueOfField {
  using type = Field;
};
template <class T>
struct ValueOfField<std::optional<T>> {
  using type = T;
};
template <class T>
struct ValueOfField<std::vector<T>> {
  using type = T;
};

template <class T>
inline constexpr bool is_checked_string = false;
template <class... Rules>
inline constexpr bool is_checked_string<Checked<std::string, Rules...>> = true;

/// Reads the decoded value of a pair; a bool also as browsers ("on") and scripts ("1") send it.
bool read_decoded(std::string_view text, bool& value) noexcept;
template <TextArgument T>
bool read_decoded(std::string_view text, T& value) {
  return read_text(text, value);
}

/// Reads the value of a pair. A value with escapes, if it is no string and no path, has at most 256
/// bytes.
template <TextArgument T>
bool read_value(const RawPair& pair, T& value) {
  if constexpr (std::same_as<T, std::string>) {
    decode_value(pair, value);
    return true;
  } else if constexpr (is_checked_string<T>) {
    std::string text;
    decode_value(pair, text);
    value = std::move(text);
    return value.holds();
  } else if constexpr (json::detail::PathLike<T>) {
    std::string text;
    decode_value(pair, text);
    return read_text(text, value);
  } else {
    if (!pair.value_has_escapes) [[likely]]
      return read_decoded(pair.value, value);
    std::array<char, 256> room;
    const std::optional<std::string_view> decoded = decode_form(pair.value, room);
    return decoded && read_decoded(*decoded, value);
  }
}

/// True if a field of a query or a form is read from texts. The compiler names all three in its
/// message.
template <class Struct, class Type, auto Field>
inline constexpr bool field_has_text = TextArgument<typename ValueOfField<Type>::type>;

template <class Struct, class Type, auto Field>
consteval bool check_field() {
  constexpr bool is_view = std::same_as<typename ValueOfField<Type>::type, std::string_view>;
  static_assert(!is_view || !field_has_text<Struct, Type, Field>,
                "weir::http: a field of a query or a form cannot be a std::string_view, since its "
                "text may have to be decoded: use std::string");
  static_assert(field_has_text<Struct, Type, Field>,
                "weir::http: a field of a query or a form is a number, a bool, a std::string, an "
                "enum with json::enumerators, a duration, a time, a path, a type with "
                "from_path_param(), or a std::optional or a std::vector of these");
  return field_has_text<Struct, Type, Field> && !is_view;
}

/// Checks that T is a struct whose fields are all read from texts.
template <class T>
consteval bool check_pairs() {
  if constexpr (json::detail::check_struct<T>()) {
    return json::detail::check_names<T>() &&
           json::detail::check_fields<T>(
               []<class Type, auto Field>() { return check_field<T, Type, Field>(); });
  } else {
    return false;
  }
}

/// A query or a form that is being read.
struct PairSource {
  /// Counts a value of a vector. Returns false if the route allows no more.
  bool may_add_value() noexcept {
    if (values++ == 0) values_max = request.argument_values_max();
    return values <= values_max;
  }
  [[gnu::cold]] void add_too_many_values() const;

  std::string_view in;  ///< "query" or "form"
  const Request& request;
  Violations& violations;
  bool is_form = in == "form";
  std::size_t values = 0;      ///< the number of values of all vectors
  std::size_t values_max = 0;  ///< that of the route, from the first value on
};

/// Decodes the name of a pair into `room`. Returns false if it is longer, and therefore not the
/// name of a field.
bool decode_name(RawPair& pair, std::span<char> room) noexcept;

/// Reads the value of a pair into its field. `seen` is true if an earlier pair had the same name.
template <class Field>
void read_field(PairSource& source, const RawPair& pair, std::string_view name, bool seen,
                Field& field) {
  using Value = typename ValueOfField<Field>::type;
  bool fits = false;
  if constexpr (is_vector<Field>) {
    if (!source.may_add_value()) return;
    if constexpr (std::same_as<Value, bool>) {  // no element of a std::vector<bool> is a bool
      bool element = false;
      fits = read_value(pair, element);
      field.push_back(element);
    } else {
      fits = read_value(pair, field.emplace_back());
    }
  } else {
    if (seen) [[unlikely]]
      return source.violations.add(source.in, name, "given twice");
    if constexpr (json::detail::is_optional<Field>) {
      fits = read_value(pair, field.emplace());
      if (!fits && pair.value.empty()) {
        field.reset();  // browsers send a field that was left blank
        return;
      }
    } else {
      fits = read_value(pair, field);
    }
  }
  if (!fits) [[unlikely]]
    source.violations.add_unfit(source.in, name, pair, &expected_text<Value>);
}

template <class T, std::size_t... I, class... Field>
void read_fields(PairSource& source, std::string_view text, std::index_sequence<I...>,
                 Field&... fields) {
  constexpr auto& names = json::detail::names<T>;
  std::uint32_t seen = 0;
  RawPair pair;
  const auto read = [&](std::string_view name, std::uint32_t bit, auto& field) {
    read_field(source, pair, name, (seen & bit) != 0, field);
    seen |= bit;
    return true;
  };
  while (take_separators(text)) {
    // Most names have no escapes and a field: this is one comparison per field.
    if ((false || ... ||
         (take_pair_of(names[I], text, pair) && read(names[I], std::uint32_t{1} << I, fields)))) {
      continue;
    }
    take_pair(text, pair);
    std::array<char, 64> room;
    if (!decode_name(pair, room)) continue;
    static_cast<void>(
        (false || ... || (pair.name == names[I] && read(names[I], std::uint32_t{1} << I, fields))));
  }
  const auto check = [&]<class F>(std::string_view name, std::uint32_t bit, const F& field) {
    // Browsers send no pair for a checkbox that is not checked.
    const bool may_be_missing =
        json::detail::is_optional<F> || is_vector<F> || (std::same_as<F, bool> && source.is_form);
    if (!may_be_missing && (seen & bit) == 0 && !json::detail::is_default(field)) [[unlikely]]
      source.violations.add(source.in, name, "missing");
  };
  (check(names[I], std::uint32_t{1} << I, fields), ...);
  if (source.values > source.values_max) [[unlikely]]
    source.add_too_many_values();
}

/// Reads the pairs of a query or a form into the fields of a struct.
template <class T>
void read_pairs(std::string_view in, std::string_view text, const Request& request, T& value,
                Violations& violations) {
  static_assert(std::is_aggregate_v<T>,
                "weir::http: http::Query<T> and http::Form<T> take a struct of public fields");
  if constexpr (check_pairs<T>()) {
    PairSource source{in, request, violations};
    json::detail::with_fields(value, [&](auto&... fields) {
      read_fields<T>(source, text, std::make_index_sequence<sizeof...(fields)>(), fields...);
    });
  }
}

// Arguments from the head of a request.

/// Returns the value of the first pair of this name in the value of a Cookie header; a view of
/// nullptr if there is none.
[[gnu::always_inline]] inline std::string_view find_in_cookies(std::string_view cookies,
                                                               std::string_view name) noexcept {
  const char* at = cookies.data();
  const char* const end = at + cookies.size();
  for (;;) {
    while (at != end && (*at == ';' || is_space(*at))) ++at;
    if (at == end) return {};
    const auto left = static_cast<std::size_t>(end - at);
    const auto* stop = static_cast<const char*>(std::memchr(at, ';', left));
    if (stop == nullptr) stop = end;
    const auto size = static_cast<std::size_t>(stop - at);
    if (size > name.size() && at[name.size()] == '=' &&
        std::memcmp(at, name.data(), name.size()) == 0) {
      const std::string_view value = trim({at + name.size() + 1, size - name.size() - 1});
      const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
      return quoted ? value.substr(1, value.size() - 2) : value;
    }
    at = stop;
  }
}

/// Returns the value of the first cookie of this name, without quotes around it. The name is a
/// constant in the callers, which therefore compare it inline.
[[gnu::always_inline]] inline std::optional<std::string_view> find_cookie(
    const RequestHead& head, std::string_view name) noexcept {
  for (std::size_t index = 0; index < head.header_count(); ++index) {
    const HeaderField header = head.header_at(index);
    if (header.name.size() != 6 || !equals_ignoring_case(header.name, "Cookie")) continue;
    const std::string_view value = find_in_cookies(header.value, name);
    if (value.data() != nullptr) return value;
  }
  return std::nullopt;
}

/// Reads one argument from the head: a Query, a Header, a Cookie or a std::optional of one. is_part
/// is false for other types. has() returns true if the request has the argument.
template <class A>
struct PartReader {
  static constexpr bool is_part = false;
};

template <class T>
struct PartReader<Query<T>> {
  static constexpr bool is_part = true;
  static bool has(const Request& request) noexcept { return !request.query_text().empty(); }
  static void read(const Request& request, Query<T>& query, Violations& violations) {
    read_pairs("query", request.query_text(), request, *query, violations);
  }
};

/// Reads a text that was found, or adds the violation that it is missing or does not fit.
template <class T>
[[gnu::always_inline]] inline void read_part(std::string_view in, std::string_view name,
                                             std::optional<std::string_view> text, T& value,
                                             Violations& violations) {
  static_assert(TextArgument<T>,
                "weir::http: a header or a cookie is read as a number, a bool, a std::string, a "
                "std::string_view, an enum with json::enumerators, a duration, a time, a path or a "
                "type with from_path_param()");
  if constexpr (TextArgument<T>) {
    if (!text) [[unlikely]]
      return violations.add(in, name, "missing");
    // The answer does not show the text: headers and cookies often hold secrets.
    if (!read_text(*text, value)) [[unlikely]]
      violations.add_unfit_secret(in, name, *text, &expected_text<T>);
  }
}

template <ConstantText Name, class T>
struct PartReader<Header<Name, T>> {
  static constexpr bool is_part = true;
  static bool has(const Request& request) noexcept {
    return request.header(Name.view()).has_value();
  }
  [[gnu::always_inline]] static void read(const Request& request, Header<Name, T>& header,
                                          Violations& violations) {
    read_part("header", Name.view(), request.header(Name.view()), *header, violations);
  }
};

template <ConstantText Name, class T>
struct PartReader<Cookie<Name, T>> {
  static constexpr bool is_part = true;
  static bool has(const Request& request) noexcept {
    return find_cookie(request.head(), Name.view()).has_value();
  }
  [[gnu::always_inline]] static void read(const Request& request, Cookie<Name, T>& cookie,
                                          Violations& violations) {
    read_part("cookie", Name.view(), find_cookie(request.head(), Name.view()), *cookie, violations);
  }
};

template <class A>
  requires(PartReader<A>::is_part)
struct PartReader<std::optional<A>> {
  static constexpr bool is_part = true;
  static void read(const Request& request, std::optional<A>& argument, Violations& violations) {
    if (PartReader<A>::has(request)) PartReader<A>::read(request, argument.emplace(), violations);
  }
};

// Values that a type of the user makes from the request.

template <class P>
inline constexpr bool is_reference_parameter =
    std::is_lvalue_reference_v<P> && std::is_class_v<std::remove_reference_t<P>> &&
    !std::is_same_v<std::remove_cvref_t<P>, Request>;

template <class... P>
constexpr void references_after_request(Parameters<P...>) {}
template <class... P>
  requires(is_reference_parameter<P> && ...)
constexpr Parameters<P...> references_after_request(Parameters<const Request&, P...>) {
  return {};
}

/// Returns the references that T::from_request() takes after the request, as Parameters<...>.
/// Returns void if T has no such function.
template <class T>
constexpr auto references_of_from_request() {
  if constexpr (requires(const Request& request) { T::from_request(request); }) {
    return Parameters<>();
  } else if constexpr (requires { requires std::is_pointer_v<decltype(&T::from_request)>; }) {
    return references_after_request(
        typename FunctionTypeOf<decltype(&T::from_request)>::ParameterTypes());
  }
}

template <class T>
concept HasFromRequest = !std::is_void_v<decltype(references_of_from_request<T>())>;

/// True if a class has any member with the name from_request, which need not be usable. The name
/// is then ambiguous in a class that inherits another one.
struct OtherFromRequest {
  int from_request;
};
template <class T>
struct WithOtherFromRequest : T, OtherFromRequest {};
template <class T>
concept NamesFromRequest = std::is_class_v<T> && !std::is_final_v<T> &&
                           !requires { &WithOtherFromRequest<T>::from_request; };

// Bodies.

/// Describes the type of a body parameter. A struct, container, tuple or variant is read from JSON
/// as Json<T> is.
template <class B>
struct BodyOf {
  static_assert(HasFromRequest<B> || !NamesFromRequest<B>,
                "weir::http: from_request() must be static, public and take a const Request&, "
                "then services as references; otherwise, the client could send the value as the "
                "body");
  static constexpr bool is_body = json::is_composite<B> && !PathParamType<B> && !HasFromRequest<B>;
  static constexpr bool is_form = false;
  using Value = B;
  static B& value(B& body) noexcept { return body; }
};
template <class T>
struct BodyOf<Json<T>> {
  static constexpr bool is_body = true;
  static constexpr bool is_form = false;
  using Value = T;
  static T& value(Json<T>& body) noexcept { return *body; }
};
template <class T>
struct BodyOf<Form<T>> {
  static constexpr bool is_body = true;
  static constexpr bool is_form = true;
  using Value = T;
  static T& value(Form<T>& body) noexcept { return *body; }
};
template <class B>
struct BodyOf<std::optional<B>> {
  static constexpr bool is_body = BodyOf<B>::is_body;
  static constexpr bool is_form = BodyOf<B>::is_form;
  using Value = typename BodyOf<B>::Value;
};

/// True for the types that name a body, which a handler may also take by const reference: Json,
/// Form and a std::optional of one.
template <class B>
inline constexpr bool names_body = false;
template <class T>
inline constexpr bool names_body<Json<T>> = true;
template <class T>
inline constexpr bool names_body<Form<T>> = true;
template <class B>
inline constexpr bool names_body<std::optional<B>> = names_body<B>;

/// Returns true if the body may be read as a form. Its Content-Type must be
/// application/x-www-form-urlencoded or absent; see accepts_type().
bool accepts_form(const Request& request) noexcept;

/// Returns the answer 400 to a form in which a '%' has no two hexadecimal digits behind it;
/// nullptr if it has none. Names that no field has count as well: the sender cannot know them.
Rejection reject_bad_escapes(std::string_view form);

/// Reads a body into `body`.
/// Returns: the answer to a body that does not fit.
template <class B>
Rejection read_body(std::string_view text, const Request& request, B& body) {
  using Of = BodyOf<B>;
  if constexpr (json::detail::is_optional<B>) {
    if (text.empty()) return nullptr;
    return read_body(text, request, body.emplace());
  } else if constexpr (Of::is_form) {
    if (Rejection malformed = reject_bad_escapes(text)) [[unlikely]]
      return malformed;
    Violations violations;
    read_pairs("form", text, request, Of::value(body), violations);
    if (violations.empty()) [[likely]]
      return nullptr;
    return reject(std::move(violations).answer(Status::unprocessable_content));
  } else {
    const std::vector<json::Error> errors = json::read_all_errors(Of::value(body), text);
    if (errors.empty()) [[likely]]
      return nullptr;
    return reject(invalid_json_response(errors, text));
  }
}

}  // namespace weir::http::detail
