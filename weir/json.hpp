// Reads structs from JSON and writes them as JSON, without macros and without code for each
// field.
//
//     struct Address { std::string street; std::optional<int> zip; };
//     struct User { std::string name; std::vector<Address> addresses; };
//
//     auto user = weir::json::read<User>(text);  // or: addresses[3].zip: expected an integer, ...
//     std::string text = weir::json::write(*user);
//
// Each C++ type has one form in JSON:
//
//     struct with public fields only        object; see below
//     bool                                  true or false
//     integers                              number; exact to 64 bits; 20.0 is not an integer
//     float, double                         number
//     std::string                           string
//     enums                                 name: see json::enumerators; without names, any integer
//     std::optional, std::unique_ptr        null or the value; an empty field is left out, and a
//                                           field may be missing
//     std::monostate, std::nullptr_t        null
//     vectors, lists, deques, sets          array
//     std::array, std::pair, std::tuple     array of exactly this length
//     maps with strings or integers         object
//     std::variant                          the alternative that fits the kind of the value;
//                                           structs are distinguished by the names of their fields
//     std::string_view, const char*         written as a string, never read
//     std::chrono durations                 string: "250ms", "5s", "1h30min"; see text/units.hpp
//     std::chrono::sys_time                 string (RFC 3339): "2026-11-25T22:14:43.5Z"
//     std::filesystem::path                 string without NUL
//     Checked<T, rule::Range<1, 5>>         a T that satisfies rules: see checked.hpp
//     other types                           the form that json::Codec of the type defines
//
// A duration and a time have whole ticks: a finer text is an error, and nothing is rounded. A
// negative duration is written, but not read. A time is written in UTC, and read with any offset.
//
// An enum without names accepts any integer of its type, so `enum class Id : int {};` can serve as
// the type of an id.
//
// A struct has at most 32 fields, no base class, no C arrays and no bit-fields. The text contains
// each required field once, in any order, and no other names. json::renames gives fields other
// names, and a field `class_` has the name "class".
//
// One rule says which fields may be missing, in JSON, queries and forms. A field is optional if it
// is a std::optional (or a std::unique_ptr), or if its struct gives it a default other than zero,
// such as `int page = 1`. A default of 0, false, "" or an empty container looks like no default, so
// such a field is required: write a std::optional. A struct as a field has a default only if it has
// operator==. ReadOptions are more lenient.
#pragma once

#include "weir/json/checked.hpp"
#include "weir/json/codec.hpp"
#include "weir/json/error.hpp"
#include "weir/json/read.hpp"
#include "weir/json/read_options.hpp"
#include "weir/json/text/units.hpp"
#include "weir/json/write.hpp"
