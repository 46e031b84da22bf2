#include "report/run_notes.h"

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "record/events.h"

namespace hlat {

namespace {

using NoteJson = nlohmann::json;

double number_at(const NoteJson& j, const char* key) {
  const auto found = j.find(key);
  return found != j.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

int64_t count_at(const NoteJson& j, const char* key) {
  const auto found = j.find(key);
  return found != j.end() && found->is_number() ? found->get<int64_t>() : 0;
}

std::string text_at(const NoteJson& j, const char* key) {
  const auto found = j.find(key);
  if (found == j.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

NotedDocument document_in(const NoteJson& j) {
  return {.source = text_at(j, "source"),
          .file = text_at(j, "file"),
          .row = count_at(j, "row"),
          .document = count_at(j, "document"),
          .byte = count_at(j, "byte"),
          .token = count_at(j, "token"),
          .tokens = count_at(j, "tokens")};
}

LossNote loss_note(const NoteJson& j, const std::string& kind) {
  LossNote note{.time = time_of(text_at(j, "time")),
                .step = count_at(j, "step"),
                .kind = kind,
                .cause = text_at(j, "cause"),
                .action = text_at(j, "action"),
                .reason = text_at(j, "reason"),
                .loss = number_at(j, "loss"),
                .grad_norm = number_at(j, "grad_norm"),
                .median = number_at(j, "median"),
                .document_count = count_at(j, "document_count")};
  if (const auto list = j.find("documents"); list != j.end() && list->is_array())
    for (const NoteJson& document : *list)
      if (document.is_object()) note.documents.push_back(document_in(document));
  return note;
}

AlarmNote alarm_note(const NoteJson& j) {
  return {.time = time_of(text_at(j, "time")),
          .step = count_at(j, "step"),
          .rule = text_at(j, "rule"),
          .evidence = text_at(j, j.contains("evidence") ? "evidence" : "reason"),
          .advice = text_at(j, "advice"),
          .value = number_at(j, "value"),
          .limit = number_at(j, "limit")};
}

// What comes again at its step, after a restart, takes the place of the earlier one: RunOverview::alarms() counts alike.
void put_loss(LossNote note, std::vector<LossNote>& losses) {
  std::erase_if(losses, [&](const LossNote& l) { return l.kind == note.kind && l.step == note.step; });
  losses.push_back(std::move(note));
}

void put_alarm(AlarmNote note, std::vector<AlarmNote>& alarms) {
  std::erase_if(alarms, [&](const AlarmNote& a) { return a.rule == note.rule && a.step == note.step; });
  alarms.push_back(std::move(note));
}

}  // namespace

RunNotes read_notes(const std::filesystem::path& folder, double since) {
  RunNotes out;
  std::ifstream in(folder / "events.jsonl", std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    const NoteJson j = NoteJson::parse(line, nullptr, false);
    if (!j.is_object() || time_of(text_at(j, "time")) < since) continue;
    const std::string kind = text_at(j, j.contains("kind") ? "kind" : "event");
    if (kind == "spike" || kind == "skip" || kind == "non_finite") put_loss(loss_note(j, kind), out.losses);
    if (kind == "alarm") put_alarm(alarm_note(j), out.alarms);
  }
  return out;
}

}  // namespace hlat
