#pragma once

#include <utility>
#include <variant>

#include "core/check.h"
#include "core/error.h"

namespace fxopt {

// Either a value, or the error that prevented the value. Errors concern the user's input or
// machine. For a bug in fxopt, an FXOPT_CHECK fails instead. The caller must not ignore a result.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose, so that `return value;` works
  Result(Error error) : state_(std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& {
    FXOPT_CHECK(ok(), "a failed result has no value");
    return std::get<0>(state_);
  }
  T& value() & {
    FXOPT_CHECK(ok(), "a failed result has no value");
    return std::get<0>(state_);
  }
  T&& value() && {
    FXOPT_CHECK(ok(), "a failed result has no value");
    return std::get<0>(std::move(state_));
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const Error& error() const& {
    FXOPT_CHECK(!ok(), "a successful result has no error");
    return std::get<1>(state_);
  }
  Error& error() & {
    FXOPT_CHECK(!ok(), "a successful result has no error");
    return std::get<1>(state_);
  }
  Error&& error() && {
    FXOPT_CHECK(!ok(), "a successful result has no error");
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

// A Status is a Result without a value.
struct Unit {};
using Status = Result<Unit>;
inline Status ok_status() { return Unit{}; }

}  // namespace fxopt
