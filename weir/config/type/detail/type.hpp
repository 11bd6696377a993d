// What is known of a type that can be configured, apart from its name in C++: how a value is filled
// from what was given, how it is written, and how both are called in messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "weir/config/source/detail/error.hpp"
#include "weir/config/source/detail/raw_value.hpp"

namespace weir::config {

/// One pass over what one source gives: where it is at, and what was wrong there.
class Filling {
 public:
  /// Both outlive it.
  Filling(Errors& errors, std::string_view source) noexcept : errors_(errors), source_(source) {}
  Filling(const Filling&) = delete;
  Filling& operator=(const Filling&) = delete;

  /// While it lives, this is about a member or an element of what it was about.
  class Inside {
   public:
    Inside(Filling& filling, std::string_view name);
    Inside(Filling& filling, std::size_t index);
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { filling_.key_.resize(size_before_); }

   private:
    Filling& filling_;
    std::size_t size_before_;
  };

  void fail(Position position, std::string what);
  /// `expected …, found …`.
  void fail_expected(std::string_view expected, const Given& given);

 private:
  Errors& errors_;
  std::string_view source_;
  std::string key_;
};

class MapType;
class SectionType;

/// Of one C++ type, whose values it is given by their address. Threads: any; immutable.
class Type {
 public:
  /// Gives `value` what was given, as far as that is right, and says what is not.
  virtual void fill(const Given& given, void* value, Filling& filling) const = 0;
  /// The value as it stands in TOML; different values have different texts.
  virtual void write(std::string& out, const void* value) const = 0;
  /// For the help: `INTEGER`, `DURATION`, `red|blue`.
  virtual std::string word() const = 0;
  /// `an integer from 0 to 65535`.
  virtual std::string expected() const = 0;

  /// Whether its option alone means true.
  virtual bool is_flag() const noexcept { return false; }
  /// Whether its option may come again, for more elements.
  virtual bool is_list() const noexcept { return false; }
  /// Of a struct, or an optional one.
  virtual const SectionType* section() const noexcept { return nullptr; }
  virtual const MapType* map() const noexcept { return nullptr; }
  /// The value in an optional, nullptr for an empty one; the value itself for other types.
  virtual const void* held(const void* value) const noexcept { return value; }

 protected:
  constexpr Type() noexcept = default;
  ~Type() = default;
};

/// What is read as one piece.
class ValueType : public Type {
 public:
  void fill(const Given& given, void* value, Filling& filling) const final;

 protected:
  constexpr ValueType() noexcept = default;
  ~ValueType() = default;

 private:
  /// False, and the value as it was, when it is not what is expected().
  virtual bool read(const Given& given, void* value) const = 0;
};

class OptionalType : public Type {
 public:
  void fill(const Given& given, void* value, Filling& filling) const final;
  /// `none` for an empty one.
  void write(std::string& out, const void* value) const final;
  std::string word() const final { return inner().word(); }
  std::string expected() const final { return inner().expected(); }
  bool is_flag() const noexcept final { return inner().is_flag(); }
  bool is_list() const noexcept final { return inner().is_list(); }
  const SectionType* section() const noexcept final { return inner().section(); }
  const MapType* map() const noexcept final { return inner().map(); }

 protected:
  constexpr OptionalType() noexcept = default;
  ~OptionalType() = default;

 private:
  virtual const Type& inner() const noexcept = 0;
  /// The value in it, made if it is empty.
  virtual void* made(void* optional) const = 0;
};

/// From an array, which replaces what was there. What is bare is an array as in TOML, or elements
/// with commas between them.
class ListType : public Type {
 public:
  void fill(const Given& given, void* value, Filling& filling) const final;
  std::string word() const final { return element().word() + ",..."; }
  std::string expected() const final { return "an array, each element " + element().expected(); }
  bool is_list() const noexcept final { return true; }

  /// What is bare, as an array. The error says why it is none.
  static std::expected<Given, std::string> split(std::string_view bare);

 protected:
  constexpr ListType() noexcept = default;
  ~ListType() = default;

 private:
  virtual const Type& element() const noexcept = 0;
  virtual void clear(void* list) const = 0;
  virtual void* append(void* list) const = 0;
};

/// From a table with keys of the user's choice, which are put beside or over those that are there.
class MapType : public Type {
 public:
  void fill(const Given& given, void* value, Filling& filling) const final;
  std::string word() const final { return "{NAME = " + inner().word() + ", ...}"; }
  std::string expected() const final { return "a table, each value " + inner().expected(); }
  const MapType* map() const noexcept final { return this; }
  virtual const Type& inner() const noexcept = 0;

 protected:
  constexpr MapType() noexcept = default;
  ~MapType() = default;

 private:
  /// The value of this name, made if there is none.
  virtual void* entry(void* map, const std::string& name) const = 0;
};

/// A member of a struct.
struct Field {
  std::string_view name;
  std::string_view note;
  const Type& (*type)() noexcept;
};

/// From a table: what it does not mention stays as it is.
class SectionType : public Type {
 public:
  void fill(const Given& given, void* value, Filling& filling) const final;
  void write(std::string& out, const void* value) const final;
  std::string word() const final { return "TABLE"; }
  std::string expected() const final { return "a table"; }
  const SectionType* section() const noexcept final { return this; }

  virtual std::span<const Field> fields() const noexcept = 0;
  /// The address of one of them.
  virtual void* member(void* section, std::size_t index) const noexcept = 0;
  const void* member(const void* section, std::size_t index) const noexcept {
    return member(const_cast<void*>(section), index);
  }

 protected:
  constexpr SectionType() noexcept = default;
  ~SectionType() = default;
};

/// The Type of T; does not compile where there is none. In config_type_of.hpp.
template <class T>
const Type& type_of() noexcept;

}  // namespace weir::config
