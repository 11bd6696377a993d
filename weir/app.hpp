// Services that are wired by their signatures: include this one file.
#pragma once

#include "weir/app/app.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/task.hpp"
#include "weir/task/timeout.hpp"
#include "weir/task/combinators.hpp"
