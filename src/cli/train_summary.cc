#include "cli/train_summary.h"

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/signals.h"
#include "record/utilization.h"

namespace hlat {

std::string summary_text(const Config& config, const TrainSummary& s) {
  const int64_t done = s.steps - s.first_step + 1;
  std::string text = "\n";
  if (done > 0)
    text += fmt::format("trained {} step{} in {}{}\n", done, done == 1 ? "" : "s", format_duration(s.seconds),
                        s.first_step > 1 ? fmt::format(", from step {} to {}", s.first_step, s.steps) : "");
  else
    text += fmt::format("step {} was done already; what comes after it took {}\n", s.steps, format_duration(s.seconds));
  if (s.ended_by != 0)
    text += fmt::format("  ended by     {}, {} step {}\n", signal_name(s.ended_by),
                        s.steps < config.train.steps ? "before" : "in the evaluation after", config.train.steps);
  if (s.loss_steps > 0)
    text += fmt::format("  final loss   {:.4f}{}{}\n", s.loss, s.loss_steps > 1 ? fmt::format(" (mean of the last {})", s.loss_steps) : "",
                        s.floor ? fmt::format(", floor {:.4f}: {:+.1f}%", *s.floor, 100.0 * (s.loss / *s.floor - 1.0)) : "");
  if (const auto& v = s.validation)
    text += fmt::format("  held out     loss {:.4f}, perplexity {:.2f}, {:.4f} bits per byte\n", v->loss, v->perplexity, v->bits_per_byte);
  if (s.validation && s.validation->sets.size() > 1)
    for (const SetLoss& set : s.validation->sets)
      text += fmt::format("    {:<10} loss {:.4f}, {:.4f} bits per byte\n", set.name, set.loss, set.bits_per_byte);
  if (done > 0) text += fmt::format("  speed        {}\n", speed_text(s.tokens_per_s, s.mfu, s.hfu, s.timed_steps));
  text += fmt::format("  memory       planned {}, used {}; process resident {}{}\n", format_bytes(s.planned.total()),
                      format_bytes(s.used.total()), format_bytes(s.resident),
                      s.device_in_use > 0 ? fmt::format(", device {} in use", format_bytes(s.device_in_use)) : "");
  if (s.skipped_steps > 0) text += fmt::format("  skipped      {} step{}\n", s.skipped_steps, s.skipped_steps == 1 ? "" : "s");
  if (!s.alarms.empty()) text += fmt::format("  alarms       {}\n", alarms_text(s.alarms));
  if (!s.save_problem.empty()) text += fmt::format("  not saved    step {}: {}\n", s.steps, s.save_problem);
  if (s.saved_step) text += fmt::format("  checkpoint   step {}\n", *s.saved_step);
  text += fmt::format("  run folder   {}\n", config.run.dir);
  return text;
}

std::string alarms_text(const std::map<std::string, int64_t>& told) {
  std::string text;
  for (const auto& [rule, times] : told)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", rule, times > 1 ? fmt::format(" {} times", times) : "");
  return text;
}

std::string samples_text(const std::vector<std::string>& samples) {
  std::string text = samples.empty() ? "" : "\nthe model writes:\n";
  for (const std::string& line : samples) text += fmt::format("  {}\n", line);
  return text;
}

nlohmann::ordered_json summary_json(const Config& config, const TrainSummary& s, const std::vector<std::string>& samples) {
  nlohmann::ordered_json j{{"steps", s.steps}};
  j["loss"] = nullptr;  // where this process has trained no step
  if (s.loss_steps > 0) put_number(j, "loss", s.loss);
  j["floor"] = s.floor ? nlohmann::ordered_json(*s.floor) : nlohmann::ordered_json();  // null when it is not known
  for (const char* key : {"val_loss", "val_ppl", "val_bpb"}) j[key] = nullptr;         // unless something is held out
  if (const auto& v = s.validation) {
    put_number(j, "val_loss", v->loss);
    put_number(j, "val_ppl", v->perplexity);
    put_number(j, "val_bpb", v->bits_per_byte);
    j["val_losses"] = nlohmann::ordered_json::object();  // by source
    for (const SetLoss& set : v->sets) put_number(j["val_losses"], set.name.c_str(), set.loss);
  }
  j.update({{"data_wait_s", s.data_wait_s},
            {"documents", s.ledger.documents()},
            {"tokens_per_s", s.tokens_per_s},
            {"mfu", is_utilization(s.mfu, s.timed_steps) ? nlohmann::ordered_json(s.mfu) : nlohmann::ordered_json()},  // null: not known
            {"hfu", is_utilization(s.hfu, s.timed_steps) ? nlohmann::ordered_json(s.hfu) : nlohmann::ordered_json()},
            {"seconds", s.seconds},
            {"planned_bytes", s.planned.total()},
            {"used_bytes", s.used.total()},
            {"resident_bytes", s.resident},
            {"device_bytes", s.device_in_use},
            {"run_dir", config.run.dir},
            {"first_step", s.first_step},
            {"skipped_steps", s.skipped_steps},
            {"alarms", s.alarms},
            {"saved_step", s.saved_step ? nlohmann::ordered_json(*s.saved_step) : nlohmann::ordered_json()},
            {"save_problem", s.save_problem.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(s.save_problem)},
            {"ended_by", s.ended_by == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(signal_name(s.ended_by))},
            {"samples", samples}});
  return j;
}

}  // namespace hlat
