// What faults do to numbers and files.
#pragma once

#include <filesystem>

#include "ops/device.h"
#include "tensor/tensor.h"

namespace hlat::fault {

// Of a flat tensor of floating-point numbers, after the device's work so far and before its later work.
void set_nan(Device& device, Tensor t, int64_t element);
void flip_bit(Device& device, Tensor t, int64_t element);  // the highest of the exponent
void multiply(Device& device, Tensor t, double factor);

// Changes bytes in the middle of the largest file of a folder; on disk when it returns. Returns the file's name.
std::string change_bytes(const std::filesystem::path& folder);

}  // namespace hlat::fault
