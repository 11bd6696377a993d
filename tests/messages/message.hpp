// Messages as a test writes them, for any protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::tests::messages {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// Returns the value of the first field called `name`, compared without case.
std::optional<std::string> find(const Fields& fields, std::string_view name);

/// The end of a message.
enum class End : std::uint8_t {
  open,      ///< more may follow
  complete,  ///< the whole message was sent
  cut,       ///< the protocol shows that a part is missing
};
std::string_view name_of(End end) noexcept;

/// Tells if the sender says the length of the body before it.
enum class Length : std::uint8_t { declared, undeclared };
/// What a receiver knows of a body when it has the head.
enum class BodyKind : std::uint8_t { none, known_length, unknown_length };

/// What requests and responses have in common, as their sender writes them.
struct SentMessage {
  Fields fields = {};                  ///< without those of the body
  std::vector<std::string> body = {};  ///< pieces
  std::size_t body_repeats = 1;        ///< times that the pieces are sent
  Length length = Length::declared;
  Fields trailers = {};
  /// `open`: the sender waits, and the message does not end. `cut`: the sender leaves.
  End end = End::complete;
};

/// Returns the number of bytes that the sender announces. A message that is not complete has one
/// more byte, which never comes.
std::size_t announced_bytes(const SentMessage& message) noexcept;

/// A request as a client sends it.
struct SentRequest {
  /// The time at which a client reads the response.
  enum class Reading : std::uint8_t { meanwhile, after_sending };
  std::string method = "GET";
  std::string target = "/";
  std::string host = "weir.test";
  SentMessage message = {};
  Reading reading = Reading::meanwhile;
};

/// A response as a scripted server sends it.
struct SentResponse {
  /// The time at which a server answers.
  enum class Moment : std::uint8_t { after_the_request, after_its_head };
  int status = 200;
  SentMessage message = {};
  Moment moment = Moment::after_the_request;
};

/// A request as a handler or a scripted server receives it.
struct ReceivedRequest {
  std::string method = {};
  std::string target = {};
  Fields fields = {};
  BodyKind kind = BodyKind::none;  ///< set by a handler only
  std::string body = {};
  Fields trailers = {};
  End end = End::open;  ///< `cut`: an error came instead of the end of the body
};

/// A response as a client receives it.
struct ReceivedResponse {
  int status = 0;  ///< 0: none has come
  Fields fields = {};
  std::string body = {};
  Fields trailers = {};
  End end = End::open;
  std::optional<std::uint32_t> reset = {};  ///< the code by which HTTP/2 has cut it
};

}  // namespace weir::tests::messages
