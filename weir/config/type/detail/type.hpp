// Describes a configurable type at run time: how a value is filled, written and named in messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "weir/config/source/detail/raw_value.hpp"
#include "weir/config/source/error.hpp"

namespace weir::config {

/// A FillContext is one pass over one source: it tracks the current key and collects errors.
class FillContext {
 public:
  /// Lifetime: `errors` and `source` outlive the FillContext.
  FillContext(Errors& errors, std::string_view source) noexcept
      : errors_(errors), source_(source) {}
  FillContext(const FillContext&) = delete;
  FillContext& operator=(const FillContext&) = delete;

  /// Appends a member's name or an element's index to the current key while the KeyScope lives.
  class KeyScope {
   public:
    KeyScope(FillContext& context, std::string_view name);
    KeyScope(FillContext& context, std::size_t index);
    KeyScope(const KeyScope&) = delete;
    KeyScope& operator=(const KeyScope&) = delete;
    ~KeyScope() { context_.key_.resize(outer_size_); }

   private:
    FillContext& context_;
    std::size_t outer_size_;
  };

  /// Returns the number of errors that were added so far.
  std::size_t error_count() const noexcept;
  void fail(Position position, std::string what);
  /// Adds the error `expected …, found …`.
  void fail_expected(std::string_view expected, const RawValue& raw);

 private:
  Errors& errors_;
  std::string_view source_;
  std::string key_;
};

class MapType;
class SectionType;

/// A Type describes one C++ type and takes that type's values by address. It is immutable.
/// Threads: any.
class Type {
 public:
  /// Fills `value` from `raw` as far as `raw` is right, and adds an error for each part that is
  /// wrong.
  virtual void fill(const RawValue& raw, void* value, FillContext& context) const = 0;
  /// Appends the value as it is written in TOML; different values have different texts.
  virtual void write(std::string& out, const void* value) const = 0;
  /// Returns the placeholder for the help: `INTEGER`, `DURATION`, `red|blue`.
  virtual std::string placeholder() const = 0;
  /// Returns the description for messages, such as `an integer from 0 to 65535`.
  virtual std::string expected() const = 0;

  /// Returns true if the option without a value means true.
  virtual bool is_flag() const noexcept { return false; }
  /// Returns true if the option may be given several times, once for each element.
  virtual bool is_list() const noexcept { return false; }
  /// Returns the section of a struct or of an optional struct; nullptr for other types.
  virtual const SectionType* section() const noexcept { return nullptr; }
  virtual const MapType* map() const noexcept { return nullptr; }
  /// Returns the value in an optional, nullptr for an empty one, and `value` for other types.
  virtual const void* unwrap_optional(const void* value) const noexcept { return value; }

 protected:
  constexpr Type() noexcept = default;
  ~Type() = default;
};

/// A ValueType is a type whose values are read as a whole, such as a number or a text.
class ValueType : public Type {
 public:
  void fill(const RawValue& raw, void* value, FillContext& context) const final;

 protected:
  constexpr ValueType() noexcept = default;
  ~ValueType() = default;

 private:
  /// Reads `raw` into `value`. Returns false and leaves `value` unchanged if `raw` is not what
  /// expected() describes.
  virtual bool read(const RawValue& raw, void* value) const = 0;
  /// Returns what is expected in the place of `raw`, which read() has rejected.
  virtual std::string expected_instead_of([[maybe_unused]] const RawValue& raw) const {
    return expected();
  }
};

class OptionalType : public Type {
 public:
  void fill(const RawValue& raw, void* value, FillContext& context) const final;
  /// Appends the value, or `none` if the optional is empty.
  void write(std::string& out, const void* value) const final;
  std::string placeholder() const final { return value_type().placeholder(); }
  std::string expected() const final { return value_type().expected(); }
  bool is_flag() const noexcept final { return value_type().is_flag(); }
  bool is_list() const noexcept final { return value_type().is_list(); }
  const SectionType* section() const noexcept final { return value_type().section(); }
  const MapType* map() const noexcept final { return value_type().map(); }

 protected:
  constexpr OptionalType() noexcept = default;
  ~OptionalType() = default;

 private:
  virtual const Type& value_type() const noexcept = 0;
  /// Returns the value in the optional, which is created if the optional is empty.
  virtual void* get_or_emplace(void* optional) const = 0;
};

/// A ListType is filled from an array, which replaces the previous elements. An untyped text is an
/// array in TOML's notation, or elements with commas between them, such as `[::]:80,[::1]:81`.
class ListType : public Type {
 public:
  void fill(const RawValue& raw, void* value, FillContext& context) const final;
  std::string placeholder() const final;
  std::string expected() const final { return "an array, each element " + element().expected(); }
  bool is_list() const noexcept final { return true; }

  /// Returns an untyped text as an array. The error describes why the text is not an array.
  static std::expected<RawValue, std::string> split(std::string_view text);

 protected:
  constexpr ListType() noexcept = default;
  ~ListType() = default;

 private:
  virtual const Type& element() const noexcept = 0;
  virtual void clear(void* list) const = 0;
  virtual void* append(void* list) const = 0;
};

/// A MapType is filled from a table with keys of the user's choice. The entries are added to the
/// existing ones. An entry with the same key is filled again: a struct keeps the members that the
/// table does not mention, and any other value is replaced.
class MapType : public Type {
 public:
  void fill(const RawValue& raw, void* value, FillContext& context) const final;
  std::string placeholder() const final {
    return "{NAME = " + value_type().placeholder() + ", ...}";
  }
  std::string expected() const final { return "a table, each value " + value_type().expected(); }
  const MapType* map() const noexcept final { return this; }
  virtual const Type& value_type() const noexcept = 0;

 protected:
  constexpr MapType() noexcept = default;
  ~MapType() = default;

 private:
  /// Returns the value of this name, which is created if there is none.
  virtual void* entry(void* map, const std::string& name) const = 0;
};

/// A Field is a member of a struct.
struct Field {
  std::string_view name;
  std::string_view help;
  const Type& (*type)() noexcept;
};

/// A SectionType is filled from a table; a member that the table does not mention keeps its value.
class SectionType : public Type {
 public:
  void fill(const RawValue& raw, void* value, FillContext& context) const final;
  void write(std::string& out, const void* value) const final;
  std::string placeholder() const final { return "TABLE"; }
  std::string expected() const final { return "a table"; }
  const SectionType* section() const noexcept final { return this; }

  virtual std::span<const Field> fields() const noexcept = 0;
  /// Returns the address of the field with this index.
  virtual void* member(void* section, std::size_t index) const noexcept = 0;
  const void* member(const void* section, std::size_t index) const noexcept {
    return member(const_cast<void*>(section), index);
  }

 protected:
  constexpr SectionType() noexcept = default;
  ~SectionType() = default;
};

/// Returns the Type of T; does not compile for an unsupported T. type_of.hpp defines the function.
template <class T>
const Type& type_of() noexcept;

}  // namespace weir::config
