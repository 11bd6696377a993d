// Umbrella header for compression.
#pragma once

#include "weir/base/result.hpp"
#include "weir/compression/coding.hpp"
#include "weir/compression/compressor.hpp"
#include "weir/compression/compressor_pool.hpp"
#include "weir/compression/decompressor.hpp"
#include "weir/compression/error.hpp"
#include "weir/compression/progress.hpp"
#include "weir/compression/raw_deflate.hpp"
