// Problems: the one description of an error that clients get (RFC 9457).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/syntax/status.hpp"

namespace weir::http {

class Response;

/// A Violation is one part of a request that does not fit, and its place.
struct Violation {
  std::string_view in;  ///< "body", "query", "form", "header" or "cookie"; a constant
  /// The name of the parameter, or the path in the body as a JSON pointer (RFC 6901).
  std::string name;
  /// Text such as "expected an integer from 1 to 5, found nine". It can hold bytes of the client:
  /// escape it in HTML.
  std::string detail;
  std::optional<std::size_t> offset = std::nullopt;  ///< the position in a body, in bytes
};

/// A Problem is the error that a response describes. The server writes it as a problem document
/// unless Router::render_errors() sets another form.
struct Problem {
  Status status = Status::internal_error;
  std::string detail = {};                 ///< what happened, for a reader; escape it in HTML
  std::vector<Violation> violations = {};  ///< all parts of the request that do not fit
  std::string type = {};                   ///< URI of the kind of the problem; empty for none

  static constexpr std::size_t violations_max = 16;
  static constexpr std::size_t violation_bytes_max = 1024;

  /// Adds a violation. It leaves out all that exceed `violations_max`, or `violation_bytes_max`
  /// bytes of names and details together, which bounds the memory that a client can make a server
  /// hold.
  void add_violation(Violation violation);
};

/// Returns an error that the server describes to the client as a problem document (RFC 9457), or in
/// the form that Router::render_errors() sets:
/// `{"title":"Conflict","status":409,"detail":"the name is taken"}`.
Response problem(Problem problem);
Response problem(Status status, std::string detail = {});

/// Returns the problem document, of media type `application/problem+json`. Members that the problem
/// does not have are left out: `{"title":"Not Found","status":404}`.
Response problem_document(const Problem& problem);

}  // namespace weir::http
