#include "task/read_records.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/reader/byte_stream.h"
#include "data/reader/utf8.h"
#include "data/tokenizer/unicode.h"
#include "task/csv.h"

namespace hlat {
namespace {

std::string at_line(const std::string& path, int64_t line) { return fmt::format("{}:{}", path, line); }

int64_t line_of(std::string_view text, size_t at) { return 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'); }

// The name without the ending of a compressed file.
std::string_view plain_name(std::string_view path, reader::Compression& compression) {
  compression = path.ends_with(".gz")    ? reader::Compression::gzip
                : path.ends_with(".zst") ? reader::Compression::zstd
                                         : reader::Compression::none;
  if (compression != reader::Compression::none) path.remove_suffix(path.size() - path.rfind('.'));
  return path;
}

template <class Call>
void for_lines(std::string_view text, const Call& call) {
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    call(++number, line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The whole file, decompressed; nothing and a problem where it is damaged or not UTF-8.
std::optional<std::string> content(const std::string& path, Problems& problems) {
  reader::Compression compression{};
  plain_name(path, compression);
  const reader::InputFile file(path);
  const auto stream = reader::open_stream(file, compression);
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (const size_t n = stream->read(buffer.data(), buffer.size())) text.append(buffer.data(), n);
  if (!stream->broken().empty()) {
    problems.add(path, stream->broken());
    return std::nullopt;
  }
  if (text.starts_with(reader::kByteOrderMark)) text.erase(0, reader::kByteOrderMark.size());
  std::string repaired;
  if (tokenizer::unicode::valid(text, repaired).data() == text.data()) return text;
  for_lines(text, [&](int64_t number, std::string_view line) {
    if (tokenizer::unicode::valid(line, repaired).data() != line.data()) problems.add(at_line(path, number), "invalid UTF-8");
  });
  return std::nullopt;
}

// What a parser says, without the library's own marks in front.
std::string reason(const std::exception& e) {
  const std::string text = e.what();
  const size_t mark = text.find("] ");
  return text.starts_with("[json.") && mark != std::string::npos ? text.substr(mark + 2) : text;
}

Json named_groups(const Pattern& pattern, const Pattern::Search& search, std::string_view text) {
  Json fields = Json::object();
  for (const auto& [name, number] : pattern.names()) {
    const auto group = search.group(number);
    fields[name] = group ? std::string(text.substr(group->begin, group->end - group->begin)) : "";
  }
  return fields;
}

class RecordReader {
 public:
  RecordReader(const DataSource& source, const std::string& path, Problems& problems) : source_(source), path_(path), problems_(problems) {}

  std::vector<TaskRecord> run() {
    const std::optional<std::string> text = content(path_, problems_);
    if (!text) return {};
    const size_t known = problems_.count();
    switch (format()) {
      case RecordFormat::jsonl: jsonl(*text); break;
      case RecordFormat::json: json(*text); break;
      case RecordFormat::csv: csv(*text); break;
      case RecordFormat::text: source_.pattern ? matches(*text) : parts(*text); break;
      case RecordFormat::by_name: break;
    }
    if (records_.empty() && problems_.count() == known) problems_.add(path_, "no records");
    return std::move(records_);
  }

  int64_t count() const { return next_; }  // broken ones too

 private:
  RecordFormat format() const {
    if (source_.format != RecordFormat::by_name) return source_.format;
    reader::Compression ignored{};
    const std::string_view name = plain_name(path_, ignored);
    if (name.ends_with(".jsonl")) return RecordFormat::jsonl;
    if (name.ends_with(".json")) return RecordFormat::json;
    if (name.ends_with(".csv")) return RecordFormat::csv;
    if (name.ends_with(".txt")) return RecordFormat::text;
    problems_.add(path_, "its name does not tell the format; say `format: jsonl`, json, csv or text");
    return RecordFormat::by_name;
  }

  void add(Json fields, const std::string& where) {
    const int64_t id = next_++;
    if (!fields.is_object())
      problems_.add(where, kind_of(fields) + " where an object with fields is needed");
    else
      records_.push_back({.id = id, .fields = std::move(fields), .where = where});
  }

  void broken(const std::string& where, const std::string& what) {
    problems_.add(where, what);
    ++next_;
  }

  void jsonl(const std::string& text) {
    for_lines(text, [&](int64_t number, std::string_view line) {
      if (line.find_first_not_of(" \t") == std::string_view::npos) return;
      try {
        add(Json::parse(line), at_line(path_, number));
      } catch (const Json::exception& e) {
        broken(at_line(path_, number), reason(e));
      }
    });
  }

  void json(const std::string& text) {
    Json all;
    try {
      all = Json::parse(text);
    } catch (const Json::exception& e) {
      return problems_.add(path_, reason(e));
    }
    for (const std::string& name : source_.list) {
      if (!all.is_object() || !all.contains(name))
        return problems_.add(path_, fmt::format("no field '{}' that leads to the records", name));
      all = Json(all[name]);
    }
    if (!all.is_array()) return problems_.add(path_, kind_of(all) + " where the list of records is looked for");
    for (Json& item : all) add(std::move(item), fmt::format("{} item {}", path_, next_ + 1));
  }

  void csv(const std::string& text) {
    std::vector<std::string> columns = source_.columns;
    bool first = true;
    for (CsvRow& row : read_csv(text, source_.separator)) {
      if (std::exchange(first, false) && columns.empty()) {
        columns = std::move(row.fields);
        continue;
      }
      const std::string where = at_line(path_, row.line);
      if (row.problem.empty() && row.fields.size() != columns.size())
        row.problem = fmt::format("{} fields, where there are {} columns", row.fields.size(), columns.size());
      if (!row.problem.empty()) {
        broken(where, row.problem);
        continue;
      }
      Json fields = Json::object();
      for (size_t i = 0; i < columns.size(); ++i) fields[columns[i]] = std::move(row.fields[i]);
      add(std::move(fields), where);
    }
  }

  void matches(std::string_view text) {
    Pattern::Search search(*source_.pattern, Pattern::Search::Captures::kept);
    Pattern::Range match{};
    for (size_t from = 0; from <= text.size() && search.find(text, from, match); from = Pattern::after(text, match))
      add(named_groups(*source_.pattern, search, text), at_line(path_, line_of(text, match.begin)));
  }

  // Up to the line break before the next start; what stands before the first start is a record where it is not blank.
  void parts(std::string_view text) {
    Pattern::Search search(*source_.record_start);
    Pattern::Range match{};
    size_t begin = 0;
    const auto part = [&](size_t end) {
      const std::string_view piece = text.substr(begin, end - begin);
      if (piece.find_first_not_of(" \t\r\n") != std::string_view::npos) add(Json{{"text", piece}}, at_line(path_, line_of(text, begin)));
    };
    for (size_t from = 0; from <= text.size() && search.find(text, from, match); from = Pattern::after(text, match)) {
      if (match.begin > begin) part(match.begin - (text[match.begin - 1] == '\n' ? 1 : 0));
      begin = match.begin;
    }
    part(text.size());
  }

 private:
  const DataSource& source_;
  const std::string& path_;
  Problems& problems_;
  std::vector<TaskRecord> records_;
  int64_t next_ = 0;
};

void join_labels(const DataSource& source, const std::string& labels, int64_t count, std::vector<TaskRecord>& records, Problems& problems) {
  const std::optional<std::string> text = content(labels, problems);
  if (!text) return;
  std::vector<std::string> lines;
  for_lines(*text, [&](int64_t, std::string_view line) { lines.emplace_back(line); });
  if (static_cast<int64_t>(lines.size()) != count)
    return problems.add(labels, fmt::format("{} labels for {} records", lines.size(), count));
  for (TaskRecord& r : records) r.fields[source.label_field] = lines[static_cast<size_t>(r.id)];
}

}  // namespace

std::vector<TaskRecord> read_records(const DataSource& source, const std::string& path, const std::string& labels, Problems& problems) {
  RecordReader reader(source, path, problems);
  std::vector<TaskRecord> records = reader.run();
  if (!labels.empty() && !records.empty()) join_labels(source, labels, reader.count(), records, problems);
  if (!source.where.given()) return records;
  std::erase_if(records, [&](const TaskRecord& r) {
    try {
      const Json wanted = source.where.value({r.fields});
      if (!wanted.is_boolean()) fail("`where` is {}, not true or false", kind_of(wanted));
      return !wanted.get<bool>();
    } catch (const Error& e) {
      problems.add(r.where, e.what());
      return true;
    }
  });
  return records;
}

Json read_fields(const Pattern& pattern, const std::string& path, Problems& problems) {
  const std::optional<std::string> text = content(path, problems);
  if (!text) return Json::object();
  Pattern::Search search(pattern, Pattern::Search::Captures::kept);
  Pattern::Range match{};
  if (search.find(*text, 0, match)) return named_groups(pattern, search, *text);
  problems.add(path, "the pattern of `shared` matches nowhere");
  return Json::object();
}

}  // namespace hlat
