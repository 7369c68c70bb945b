#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "ir/graph/expr.h"
#include "ir/graph/module.h"

namespace fxopt {

// An integer that may depend on symbols, for tests of equality. The integer is stored as the value
// of its polynomial at one secret point, modulo two primes. This method is called polynomial
// identity testing. Two different polynomials of degree d have the same stored value with at most
// this probability (Schwartz 1980, Zippel 1979):
//
//   (d / 2^61) * (d / 2^62)
//
// A sum or a product is computed from these stored values, in constant time. Equal polynomials have
// equal stored values, so `s0 * (s1 + 2)` equals `2 * s0 + s1 * s0`. An expression that is not a
// polynomial, such as a floor division or a maximum, is treated as a separate symbol. A hash of the
// expression identifies this symbol. Two plain 64-bit integers have the same stored value only if
// they are equal.
class SymInt {
 public:
  SymInt() : SymInt(0) {}
  SymInt(int64_t value)  // NOLINT(google-explicit-constructor): every integer is a SymInt
      : first_(residue(value, kFirstPrime)), second_(residue(value, kSecondPrime)), value_(value), is_static_(true) {}
  // Returns the symbol that the hash `name` identifies. `name` may be the hash of a symbol's name,
  // of an expression, or of the source of a data-dependent number.
  static SymInt symbol(const Hash128& name);

  bool is_static() const { return is_static_; }
  // Returns the number if is_static() holds. A result of operations on plain numbers is static if
  // every step stays within 64 bits.
  int64_t value() const { return value_; }
  bool is(int64_t number) const { return is_static_ && value_ == number; }

  // A key that is the same for equal integers, symbolic or plain.
  Hash128 key() const { return {first_, second_}; }

  friend SymInt operator+(const SymInt& a, const SymInt& b);
  friend SymInt operator-(const SymInt& a, const SymInt& b);
  friend SymInt operator*(const SymInt& a, const SymInt& b);
  friend bool operator==(const SymInt& a, const SymInt& b) { return a.first_ == b.first_ && a.second_ == b.second_; }

 private:
  static constexpr uint64_t kFirstPrime = (uint64_t{1} << 61U) - 1;
  static constexpr uint64_t kSecondPrime = (uint64_t{1} << 63U) - 25;

  static uint64_t residue(int64_t value, uint64_t prime) {
    if (value >= 0 && static_cast<uint64_t>(value) < prime) return static_cast<uint64_t>(value);
    return far_residue(value, prime);
  }
  static uint64_t far_residue(int64_t value, uint64_t prime);
  // Returns an integer that is not static. `first` and `second` are its polynomial's value at the
  // secret point, modulo kFirstPrime and modulo kSecondPrime.
  static SymInt from_residues(uint64_t first, uint64_t second);

  uint64_t first_ = 0;   // modulo kFirstPrime
  uint64_t second_ = 0;  // modulo kSecondPrime; no two 64-bit integers have the same two residues
  int64_t value_ = 0;
  bool is_static_ = false;
};

// Returns the symbol with this name. Symbols of different modules with the same name are equal.
SymInt symbol_named(std::string_view name);

// Returns the integer of one expression of the module. O(n log n) for n subexpressions.
SymInt sym_int_of(const Module& module, ExprId id);

// The integers of one module's expressions. Each integer is computed once. Symbols are identified
// by name, so two modules can be compared. Expressions may be added to the module later.
class SymInts {
 public:
  explicit SymInts(const Module& module) : module_(&module) {}

  // O(expressions that were not queried before), amortised over all calls.
  SymInt of(ExprId id);
  SymInt of(const Dim& dim) { return dim.is_static() ? SymInt(dim.value) : of(dim.expr); }

 private:
  const Module* module_;
  std::vector<SymInt> known_;
};

}  // namespace fxopt
