#include "train/loss_event.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "comm/host_exchange.h"
#include "record/metrics.h"

namespace hlat {

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_of(const BatchDocument& d) {
  return {{"row", d.row},   {"source", d.source}, {"file", d.file},    {"document", d.document},
          {"byte", d.byte}, {"token", d.token},   {"tokens", d.tokens}};
}

BatchDocument document_from(const OrderedJson& j) {
  return {.row = j.at("row"),
          .source = j.at("source"),
          .file = j.at("file"),
          .document = j.at("document"),
          .byte = j.at("byte"),
          .token = j.at("token"),
          .tokens = j.at("tokens")};
}

// Texts of any length, in rank order.
std::vector<std::string> gather_texts(Comm& comm, const std::string& own) {
  const std::vector<uint64_t> sizes = all_gather_values(comm, uint64_t{own.size()});
  const size_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::string> texts(sizes.size());
  if (longest == 0) return texts;
  std::string all(longest * sizes.size(), '\0');
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(longest * static_cast<size_t>(comm.rank())));
  comm.host().all_gather_bytes(all.data(), longest);
  for (size_t r = 0; r < texts.size(); ++r) texts[r] = all.substr(r * longest, sizes[r]);
  return texts;
}

}  // namespace

const char* kind_of(const LossEvent& event) {
  if (event.alarm) return "alarm";
  return event.verdict.action == LossAction::skip ? "skip" : event.verdict.cause == LossCause::spike ? "spike" : "non_finite";
}

std::string reason_of(const LossEvent& e) {
  if (e.alarm) return e.alarm->evidence;
  if (e.verdict.cause == LossCause::asked) return e.verdict.words;
  return fmt::format("{}{}", e.verdict.words, e.verdict.action == LossAction::skip ? "; the update is left out" : "");
}

namespace {

OrderedJson fields_of_alarm(const Alarm& alarm, const LossVerdict& verdict) {
  OrderedJson j{{"rule", name_of(alarm.rule)}, {"action", name_of(verdict.action)}, {"since", alarm.since}};
  put_number(j, "value", alarm.value);
  put_number(j, "limit", alarm.limit);
  j["evidence"] = alarm.evidence;
  j["advice"] = alarm.advice;
  return j;
}

}  // namespace

nlohmann::ordered_json fields_of(const LossEvent& e) {
  if (e.alarm) return fields_of_alarm(*e.alarm, e.verdict);
  OrderedJson j{{"cause", name_of(e.verdict.cause)}, {"action", name_of(e.verdict.action)}};
  const bool computed = e.verdict.cause != LossCause::asked;
  for (const auto& [name, value] : {std::pair("loss", e.verdict.loss), std::pair("grad_norm", e.verdict.grad_norm)}) {
    if (computed)
      put_number(j, name, value);
    else
      j[name] = nullptr;
  }
  put_number(j, "median", e.verdict.found.median);
  put_number(j, "spread", e.verdict.found.spread);
  put_number(j, "norm_mean", e.verdict.found.norm_mean);
  j["rows"] = e.rows;
  j["document_count"] = e.documents.count;
  j["documents"] = OrderedJson::array();
  for (const BatchDocument& d : e.documents.first) j["documents"].push_back(json_of(d));
  if (!e.problem.empty()) j["documents_problem"] = e.problem;
  return j;
}

std::string first_documents(const BatchDocuments& documents, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(most, documents.first.size()); ++i) {
    const BatchDocument& d = documents.first[i];
    text += fmt::format("{}{} document {} (row {})", text.empty() ? "" : ", ", d.file.empty() ? d.source : d.file, d.document, d.row);
  }
  const uint64_t more = documents.count - std::min<uint64_t>(documents.count, most);
  return more > 0 ? fmt::format("{} and {} more", text, more) : text;
}

BatchDocuments gather_documents(Comm& dp, const BatchDocuments& own, size_t most) {
  BatchDocuments all;
  uint64_t before = 0;  // told by ranks before this
  const std::vector<uint64_t> told = all_gather_values(dp, uint64_t{own.first.size()});
  for (int r = 0; r < dp.rank(); ++r) before += told[static_cast<size_t>(r)];
  for (const uint64_t count : all_gather_values(dp, own.count)) all.count += count;
  OrderedJson mine = OrderedJson::array();
  for (size_t i = 0; i < own.first.size() && before + i < most; ++i) mine.push_back(json_of(own.first[i]));
  for (const std::string& text : gather_texts(dp, mine.empty() ? std::string() : json_text(mine))) {
    if (text.empty()) continue;
    for (const OrderedJson& j : OrderedJson::parse(text)) all.first.push_back(document_from(j));
  }
  return all;
}

}  // namespace hlat
