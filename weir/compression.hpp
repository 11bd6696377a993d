// Umbrella header for compression.
#pragma once

#include "weir/base/result.hpp"
#include "weir/compression/error.hpp"
#include "weir/compression/progress.hpp"
#include "weir/compression/raw_deflate.hpp"
