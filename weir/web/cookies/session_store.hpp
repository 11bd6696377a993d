// SessionStore: where the data of sessions lies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// The way in which save() treats an entry that exists, or is missing.
enum class SessionSave : std::uint8_t {
  create,   ///< it makes a new entry; ids are random, so none exists
  replace,  ///< it replaces an entry; Errc::not_found if it has gone, since a session must not
            ///< return
};

/// The data of sessions by their ids. An id has 32 characters of base64url. Sessions calls it on
/// all cores. Another implementation keeps the data in a database.
/// Threads: any core.
class SessionStore {
 public:
  virtual ~SessionStore() = default;
  /// Returns the data of a session, and extends its life: it ends `lifetime` from now. Returns
  /// nullopt if the session does not exist.
  /// Errors: those of the store.
  /// Cancel: the life may be extended.
  virtual Task<Result<std::optional<std::string>>> load(std::string id, Duration lifetime) = 0;
  /// Saves the data of a session, which ends `lifetime` from now.
  /// Errors: not_found, see SessionSave; limit_reached for data that does not fit; others.
  /// Cancel: the data may be saved.
  virtual Task<Result<>> save(std::string id, std::string data, Duration lifetime,
                              SessionSave how) = 0;
  /// Removes a session, if it exists.
  /// Errors: those of the store.
  /// Cancel: the session may be removed.
  virtual Task<Result<>> remove(std::string id) = 0;
};

}  // namespace weir::http
