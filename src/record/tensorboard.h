// TensorBoard event files, written without TensorFlow. A file is a row of records (TFRecord framing):
//   u64 length | u32 masked crc32c(length bytes) | data | u32 masked crc32c(data), little endian,
// where data is a protobuf Event {1: double wall_time, 2: int64 step, 3: string file_version | 5: Summary} and a Summary
// holds Values {1: string tag, 2: float simple_value}; a text is a Value {1: tag, 8: a tensor of one string, 9: the plugin "text"}. The
// first record carries the version "brain.Event:2".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "record/metrics.h"

namespace hlat {

uint32_t crc32c(std::string_view data);
uint32_t masked_crc32c(std::string_view data);  // as a record has it

class EventWriter {
 public:
  // Creates `folder`/events.out.tfevents.SECONDS.HOST.PID.N: TensorBoard finds files by such names. N counts up from 0 where a
  // file exists.
  EventWriter(const std::filesystem::path& folder, double wall_time);

  void write(const StepMetrics& m, double wall_time);    // tags train/loss, train/grad_norm, ..., monitor/grad_norm/03
  void write(const TaskMetrics& m, double wall_time);    // tags eval/hellaswag/acc_norm, ...
  void write(const ToldAlarm& alarm, double wall_time);  // tags alarm/leak, and alarm/leak/evidence, a text

 private:
  void record(const std::string& event);

  OutputFile file_;
};

}  // namespace hlat
