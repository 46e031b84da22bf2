#include "support/arrow_files.h"

#include <stdexcept>

#ifdef HLAT_HAVE_ARROW
#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>
#endif

namespace hlat::test {

#ifdef HLAT_HAVE_ARROW
namespace {

using Texts = std::vector<std::optional<std::string>>;

void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

template <class Builder>
std::shared_ptr<arrow::Array> text_array(const Texts& texts, Builder builder) {
  for (const auto& text : texts) check(text ? builder.Append(std::string_view(*text)) : builder.AppendNull());
  return builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> text_array(const Texts& texts, const std::string& type) {
  if (type == "utf8") return text_array(texts, arrow::StringBuilder());
  if (type == "large_utf8") return text_array(texts, arrow::LargeStringBuilder());
  if (type == "binary") return text_array(texts, arrow::BinaryBuilder());
  if (type == "utf8_view") return text_array(texts, arrow::StringViewBuilder());
  if (type == "dictionary") return text_array(texts, arrow::StringDictionaryBuilder());
  throw std::runtime_error("no type " + type);
}

std::shared_ptr<arrow::Table> table_of(const Texts& texts, const std::string& type) {
  arrow::Int64Builder id;
  arrow::Int32Builder other;
  for (size_t i = 0; i < texts.size(); ++i) {
    check(id.Append(static_cast<int64_t>(i)));
    check(other.Append(7));
  }
  const auto column = text_array(texts, type);
  const auto schema =
      arrow::schema({arrow::field("id", arrow::int64()), arrow::field("text", column->type()), arrow::field("other", arrow::int32())});
  return arrow::Table::Make(schema, {id.Finish().ValueOrDie(), column, other.Finish().ValueOrDie()});
}

}  // namespace

bool have_arrow() { return true; }

std::string make_table(const Texts& texts, const TableKind& kind) {
  const auto table = table_of(texts, kind.type);
  const auto codec =
      kind.codec.empty() ? arrow::Compression::UNCOMPRESSED : arrow::util::Codec::GetCompressionType(kind.codec).ValueOrDie();
  const auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  if (kind.format == "parquet") {
    const auto properties = parquet::WriterProperties::Builder().compression(codec)->data_pagesize(4096)->build();
    const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
    check(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, kind.rows, properties, arrow_properties));
  } else {
    auto options = arrow::ipc::IpcWriteOptions::Defaults();
    if (!kind.codec.empty()) options.codec = arrow::util::Codec::Create(codec).ValueOrDie();
    const auto writer = kind.format == "file" ? arrow::ipc::MakeFileWriter(sink, table->schema(), options).ValueOrDie()
                                              : arrow::ipc::MakeStreamWriter(sink, table->schema(), options).ValueOrDie();
    check(writer->WriteTable(*table, kind.rows));
    check(writer->Close());
  }
  return sink->Finish().ValueOrDie()->ToString();
}
#else
bool have_arrow() { return false; }

std::string make_table(const std::vector<std::optional<std::string>>& /*texts*/, const TableKind& /*kind*/) {
  throw std::runtime_error("this build has no Arrow");
}
#endif

std::string make_table(const std::vector<std::string>& texts, const TableKind& kind) {
  return make_table(std::vector<std::optional<std::string>>(texts.begin(), texts.end()), kind);
}

}  // namespace hlat::test
