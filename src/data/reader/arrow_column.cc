// Text columns through Apache Arrow. Files are read by position, never mapped (input_file.h says why). Values are not trusted: their
// places inside a batch are checked before they are looked at.
#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/reader.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/properties.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/reader/byte_stream.h"
#include "data/reader/field_list.h"
#include "data/reader/table_column.h"

namespace hlat::reader {
namespace {

using Texts = std::vector<std::optional<std::string_view>>;

// An InputFile as Arrow wants it. Remembers what it read to where since the last forget(), so that a value can be found again in
// the file.
class ArrowFile final : public arrow::io::RandomAccessFile {
 public:
  explicit ArrowFile(const InputFile& file) : file_(file) {}

  arrow::Result<int64_t> GetSize() override { return static_cast<int64_t>(file_.size()); }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Seek(int64_t position) override {
    if (position < 0) return arrow::Status::Invalid("seek before the begin");
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

  arrow::Result<int64_t> ReadAt(int64_t position, int64_t bytes, void* out) override {
    if (position < 0 || bytes < 0) return arrow::Status::Invalid("read of ", bytes, " bytes at ", position);
    try {
      char* const to = static_cast<char*>(out);
      const auto n = static_cast<int64_t>(file_.read(static_cast<uint64_t>(position), to, static_cast<size_t>(bytes)));
      ranges_.push_back({to, n, static_cast<uint64_t>(position)});
      return n;
    } catch (const Error& e) {
      return arrow::Status::IOError(e.what());
    }
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t bytes) override {
    // A damaged length must not become a huge allocation.
    const int64_t there = std::max<int64_t>(static_cast<int64_t>(file_.size()) - position, 0);
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(std::clamp<int64_t>(bytes, 0, there)));
    ARROW_ASSIGN_OR_RAISE(const int64_t n, ReadAt(position, buffer->size(), buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(n, /*shrink_to_fit=*/false));
    buffer->ZeroPadding();
    return buffer;
  }
  arrow::Result<int64_t> Read(int64_t bytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t n, ReadAt(position_, bytes, out));
    position_ += n;
    return n;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, bytes));
    position_ += buffer->size();
    return buffer;
  }

  void forget() { ranges_.clear(); }
  uint64_t read_to() const {
    uint64_t to = 0;
    for (const Range& r : ranges_) to = std::max(to, r.offset + static_cast<uint64_t>(r.bytes));
    return to;
  }
  std::optional<uint64_t> place_of(std::string_view data) const {
    for (const Range& r : ranges_) {
      if (data.data() < r.data || data.data() + data.size() > r.data + r.bytes) continue;
      const uint64_t place = r.offset + static_cast<uint64_t>(data.data() - r.data);
      // A buffer that was freed may have become another one at the same address.
      if (same(place, data)) return place;
    }
    return std::nullopt;
  }

 private:
  struct Range {
    const char* data;
    int64_t bytes;
    uint64_t offset;
  };
  bool same(uint64_t place, std::string_view data) const {
    std::vector<char> piece(std::min<size_t>(data.size(), 1 << 20));
    for (size_t at = 0; at < data.size(); at += piece.size()) {
      const size_t n = std::min(piece.size(), data.size() - at);
      if (file_.read(place + at, piece.data(), n) != n || std::memcmp(piece.data(), data.data() + at, n) != 0) return false;
    }
    return true;
  }

  const InputFile& file_;
  int64_t position_ = 0;
  bool closed_ = false;
  std::vector<Range> ranges_;
};

// String and binary arrays with 32 or 64 bit offsets: checked offsets into one buffer.
template <class Array>
arrow::Status offset_texts(const Array& array, Texts& out) {
  const int64_t size = array.value_data() ? array.value_data()->size() : 0;
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t begin = array.value_offset(i);
    const int64_t end = array.value_offset(i + 1);
    if (begin < 0 || end < begin || end > size) return arrow::Status::Invalid("value ", i, " lies outside of its data");
    if (array.IsNull(i))
      out.emplace_back(std::nullopt);
    else
      out.emplace_back(array.GetView(i));
  }
  return arrow::Status::OK();
}

// Views are short values themselves, or point into one of several buffers.
arrow::Status view_texts(const arrow::BinaryViewArray& array, Texts& out) {
  const auto& buffers = array.data()->buffers;  // validity, views, data...
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i)) {
      out.emplace_back(std::nullopt);
      continue;
    }
    const auto& view = array.raw_values()[i];
    if (!view.is_inline()) {
      const int64_t index = int64_t{view.ref.buffer_index} + 2;
      const int64_t end = int64_t{view.ref.offset} + view.size();
      if (view.size() < 0 || view.ref.offset < 0 || index < 2 || index >= static_cast<int64_t>(buffers.size()) || !buffers[index] ||
          end > buffers[index]->size())
        return arrow::Status::Invalid("value ", i, " lies outside of its data");
    }
    out.emplace_back(array.GetView(i));
  }
  return arrow::Status::OK();
}

arrow::Status texts_of(const arrow::Array& array, Texts& out);

arrow::Status dictionary_texts(const arrow::DictionaryArray& array, Texts& out) {
  Texts values;
  ARROW_RETURN_NOT_OK(array.dictionary()->Validate());
  ARROW_RETURN_NOT_OK(texts_of(*array.dictionary(), values));
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t index = array.IsNull(i) ? -1 : array.GetValueIndex(i);
    if (index >= static_cast<int64_t>(values.size()) || (index < 0 && !array.IsNull(i))) return arrow::Status::Invalid("no word ", index);
    out.push_back(index < 0 ? std::nullopt : values[static_cast<size_t>(index)]);
  }
  return arrow::Status::OK();
}

arrow::Status texts_of(const arrow::Array& array, Texts& out) {
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY: return offset_texts(static_cast<const arrow::BinaryArray&>(array), out);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY: return offset_texts(static_cast<const arrow::LargeBinaryArray&>(array), out);
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW: return view_texts(static_cast<const arrow::BinaryViewArray&>(array), out);
    case arrow::Type::DICTIONARY: return dictionary_texts(static_cast<const arrow::DictionaryArray&>(array), out);
    default: return arrow::Status::TypeError("not text but ", array.type()->ToString());
  }
}

bool is_text(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY) return is_text(*static_cast<const arrow::DictionaryType&>(type).value_type());
  return arrow::is_base_binary_like(type.id()) || arrow::is_binary_view_like(type.id());
}

// The place of the column in the schema; an Error that lists what there is.
int find_column(const arrow::Schema& schema, const std::string& field, const std::string& path) {
  const int column = schema.GetFieldIndex(field);
  if (column < 0) fail<UsageError>("{}: no column \"{}\"; it has {}", path, field, field_list(field, schema.field_names()));
  const auto type = schema.field(column)->type();
  if (!is_text(*type)) fail<UsageError>("{}: column \"{}\" is {}, not text", path, field, type->ToString());
  return column;
}

// Arrow gives Status for what it foresees; Parquet also throws.
template <class Call>
arrow::Status guarded(const Call& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    return arrow::Status::IOError(e.what());
  }
}

class ArrowColumn : public TableColumn {
 public:
  ArrowColumn(const InputFile& file, std::string field)
      : path_(file.path()), field_(std::move(field)), size_(file.size()), file_(std::make_shared<ArrowFile>(file)) {}

  std::optional<TableBatch> next() override {
    if (ended_) return std::nullopt;
    TableBatch batch;
    const arrow::Status status = guarded([&] { return read(batch); });
    if (!status.ok()) {
      ended_ = true;
      batch = TableBatch();
      batch.broken = status.ToString() + lost_behind(good_to_, size_);
    }
    if (ended_ && batch.broken.empty()) return std::nullopt;
    batch.read_to = good_to_;
    return batch;
  }

 protected:
  virtual arrow::Status open() = 0;
  virtual arrow::Result<std::shared_ptr<arrow::RecordBatch>> read_rows() = 0;  // null at the end
  const std::string& path() const { return path_; }
  const std::string& field() const { return field_; }
  const std::shared_ptr<ArrowFile>& file() const { return file_; }

 private:
  arrow::Status read(TableBatch& batch) {
    if (!open_) ARROW_RETURN_NOT_OK(open());
    open_ = true;
    file_->forget();
    ARROW_ASSIGN_OR_RAISE(const auto rows, read_rows());
    ended_ = rows == nullptr;
    if (ended_) return arrow::Status::OK();
    const auto column = rows->GetColumnByName(field_);
    if (!column) return arrow::Status::Invalid("the column is gone");
    ARROW_RETURN_NOT_OK(column->Validate());
    ARROW_RETURN_NOT_OK(texts_of(*column, batch.texts));
    batch.owner = rows;
    good_to_ = std::max(good_to_, file_->read_to());
    find_place(*column, batch);
    return arrow::Status::OK();
  }

  void find_place(const arrow::Array& column, TableBatch& batch) const {
    if (!arrow::is_base_binary_like(column.type_id())) return;
    const auto& data = column.data()->buffers[2];
    if (!data || data->size() == 0) {
      batch.in_place = true;  // nothing but empty texts
      return;
    }
    const char* base = reinterpret_cast<const char*>(data->data());
    const std::optional<uint64_t> place = file_->place_of({base, static_cast<size_t>(data->size())});
    batch.in_place = place.has_value();
    batch.base = base;
    batch.begin = place.value_or(0);
  }

  std::string path_;
  std::string field_;
  uint64_t size_;
  uint64_t good_to_ = 0;  // what was read before came out good
  std::shared_ptr<ArrowFile> file_;
  bool open_ = false;
  bool ended_ = false;
};

class IpcColumn final : public ArrowColumn {
 public:
  using ArrowColumn::ArrowColumn;

 private:
  arrow::Status open() override {
    arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
    options.use_threads = false;
    char magic[6] = {};
    ARROW_ASSIGN_OR_RAISE(const int64_t n, file()->ReadAt(0, sizeof magic, magic));
    if (n == 0) return arrow::Status::OK();  // an empty file, as all formats have it
    if (std::memcmp(magic, "ARROW1", sizeof magic) == 0) {
      ARROW_ASSIGN_OR_RAISE(table_, arrow::ipc::RecordBatchFileReader::Open(file(), options));
      options.included_fields = {find_column(*table_->schema(), field(), path())};
      ARROW_ASSIGN_OR_RAISE(table_, arrow::ipc::RecordBatchFileReader::Open(file(), options));
      return arrow::Status::OK();
    }
    ARROW_ASSIGN_OR_RAISE(stream_, arrow::ipc::RecordBatchStreamReader::Open(file(), options));
    find_column(*stream_->schema(), field(), path());
    return arrow::Status::OK();
  }
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> read_rows() override {
    if (stream_) return stream_->Next();
    if (!table_ || batch_ >= table_->num_record_batches()) return nullptr;
    return table_->ReadRecordBatch(batch_++);
  }

  std::shared_ptr<arrow::ipc::RecordBatchFileReader> table_;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> stream_;
  int batch_ = 0;
};

class ParquetColumn final : public ArrowColumn {
 public:
  using ArrowColumn::ArrowColumn;

 private:
  arrow::Status open() override {
    ARROW_ASSIGN_OR_RAISE(const int64_t size, file()->GetSize());
    if (size == 0) return arrow::Status::OK();
    // A row group may be larger than memory: pages are read as rows are.
    parquet::ReaderProperties properties = parquet::default_reader_properties();
    properties.enable_buffered_stream();
    properties.set_buffer_size(1 << 20);
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_batch_size(512);
    arrow_properties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(file(), properties));
    builder.properties(arrow_properties);
    ARROW_ASSIGN_OR_RAISE(reader_, builder.Build());
    std::shared_ptr<arrow::Schema> schema;
    ARROW_RETURN_NOT_OK(reader_->GetSchema(&schema));
    const int column = find_column(*schema, field(), path());
    std::vector<int> groups(static_cast<size_t>(reader_->num_row_groups()));
    for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
    ARROW_ASSIGN_OR_RAISE(rows_, reader_->GetRecordBatchReader(groups, {reader_->manifest().schema_fields[column].column_index}));
    return arrow::Status::OK();
  }
  arrow::Result<std::shared_ptr<arrow::RecordBatch>> read_rows() override { return rows_ ? rows_->Next() : nullptr; }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> rows_;  // uses the reader
};

}  // namespace

std::unique_ptr<TableColumn> open_arrow_column(const InputFile& file, const std::string& field) {
  return std::make_unique<IpcColumn>(file, field);
}

std::unique_ptr<TableColumn> open_parquet_column(const InputFile& file, const std::string& field) {
  return std::make_unique<ParquetColumn>(file, field);
}

}  // namespace hlat::reader
