// Import and export of Hugging Face folders: round trips to identical tensors, exports of every kind of checkpoint, refusals that name what
// is wrong, and mutated folders that never crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "base/bf16.h"
#include "base/rng.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/hf/hf_config.h"
#include "checkpoint/hf/hf_export.h"
#include "checkpoint/hf/hf_tensors.h"
#include "checkpoint/piece_file.h"
#include "config/print.h"
#include "config/saved.h"
#include "support/hf_folder.h"
#include "support/message_of.h"
#include "support/paths.h"

namespace hlat {
namespace {

namespace fs = std::filesystem;
using test::copy_of_fixture;
using test::edit_json;
using test::hf_fixture;
using test::HfValues;
using test::TempDir;
using test::tensors_of;

Config config_of(const CheckpointReader& reader) { return config_from_json(nlohmann::ordered_json::parse(reader.index().config)).config; }

ExportResult export_to(const fs::path& checkpoint, const fs::path& to, const ExportOptions& options) {
  CheckpointReader reader(checkpoint);
  return export_hf(reader, config_of(reader), to, options);
}

std::string import_message(const fs::path& source) {
  const TempDir dir;
  return message_of([&] { import_hf(source, dir.path("to"), {}); });
}

std::map<std::string, HfValues> as_type(std::map<std::string, HfValues> tensors, const std::string& dtype) {
  for (auto& [name, t] : tensors) {
    t.dtype = dtype;
    if (dtype == "BF16")
      for (float& v : t.values) v = to_float(to_bf16(v));
  }
  return tensors;
}

// The types of the files: mha bf16, gqa f32, tied f16, which becomes f32 with the same values.
TEST(HfRoundTrip, GivesIdenticalTensors) {
  for (const std::string& name : test::hf_fixtures()) {
    const TempDir dir;
    const ImportResult imported = import_hf(hf_fixture(name), dir.path("imported"), {});
    EXPECT_EQ(imported.types, std::vector<DType>{name == "mha" ? DType::bf16 : DType::f32});
    const bool bf16 = name == "mha";
    const ExportResult exported = export_to(imported.checkpoint, dir.path("exported"), {.dtype = bf16 ? DType::bf16 : DType::f32});
    EXPECT_EQ(exported.weight_files, std::vector<std::string>{"model.safetensors"});
    EXPECT_EQ(tensors_of(dir.path("exported")), as_type(tensors_of(hf_fixture(name)), bf16 ? "BF16" : "F32")) << name;
    EXPECT_EQ(imported.parameters, exported.parameters);
    const HfConfig before = parse_hf_config(test::slurp((hf_fixture(name) / "config.json").string()));
    const HfConfig after = parse_hf_config(test::slurp(dir.path("exported/config.json")));
    EXPECT_EQ(after.model, before.model) << name;
    EXPECT_EQ(after.max_length, before.max_length);
  }
}

TEST(HfRoundTrip, DtypeOfAnImportAndOfAnExport) {
  const TempDir dir;
  const auto original = tensors_of(hf_fixture("gqa"));
  const ImportResult narrow = import_hf(hf_fixture("gqa"), dir.path("narrow"), {.dtype = DType::bf16});
  EXPECT_EQ(narrow.types, std::vector<DType>{DType::bf16});
  export_to(narrow.checkpoint, dir.path("a"), {});
  EXPECT_EQ(tensors_of(dir.path("a")), as_type(original, "BF16"));
  const ImportResult wide = import_hf(hf_fixture("gqa"), dir.path("wide"), {});
  const ExportResult rounded = export_to(wide.checkpoint, dir.path("b"), {});
  EXPECT_EQ(tensors_of(dir.path("b")), as_type(original, "BF16"));
  EXPECT_EQ(rounded.notes, std::vector<std::string>{"f32 weights are rounded to bf16, to the nearest"});
}

TEST(HfExport, ShardsBySizeWithAnIndex) {
  const TempDir dir;
  const ImportResult imported = import_hf(hf_fixture("gqa"), dir.path("imported"), {});
  const ExportResult exported = export_to(imported.checkpoint, dir.path("out"), {.dtype = DType::f32, .shard_bytes = 20000});
  ASSERT_GT(exported.weight_files.size(), 2u);
  EXPECT_EQ(exported.weight_files.front(), fmt::format("model-00001-of-{:05}.safetensors", exported.weight_files.size()));
  for (const std::string& file : exported.weight_files) {
    const SafetensorsHeader header = SafetensorsHeader::read(dir.path("out/" + file));
    EXPECT_EQ(header.metadata.at("format"), "pt");
    EXPECT_LE(header.tensors.back().end, 20000u);
  }
  const auto index = nlohmann::json::parse(test::slurp(dir.path("out/model.safetensors.index.json")));
  EXPECT_EQ(index["metadata"]["total_size"], exported.bytes);
  EXPECT_EQ(index["weight_map"].size(), tensors_of(hf_fixture("gqa")).size());
  EXPECT_EQ(tensors_of(dir.path("out")), tensors_of(hf_fixture("gqa")));
}

// A checkpoint of a run with masters, saved by two tensor parallel ranks: matrices are cut by columns or by rows.
class SplitCheckpoint {
 public:
  SplitCheckpoint() {
    config_.model = parse_hf_config(test::slurp((hf_fixture("gqa") / "config.json").string())).model;
    config_.train.seq_len = 48;
    CheckpointIndex index;
    index.run = "run";
    index.config = to_json(config_).dump();
    for (const HfTensor& t : hf_tensors(config_.model))
      for (const StateKind kind : {StateKind::weight, StateKind::master, StateKind::moment1, StateKind::moment2}) {
        index.tensors.push_back(t.tensor);
        index.tensors.back().kind = kind;
        index.tensors.back().dtype = kind == StateKind::weight ? DType::bf16 : DType::f32;
      }
    NewCheckpoint made(dir_.path("run"), 7);
    for (int64_t rank = 0; rank < 2; ++rank) index.files.push_back(write_rank(index.tensors, rank));
    index.step = 7;
    made.commit(index);
  }
  fs::path folder() const { return dir_.path("run/step_7"); }
  const Config& config() const { return config_; }

  // Element e of a tensor; weights are another number than masters, as with stochastic rounding.
  static float value(const SavedTensor& t, int64_t e) {
    const float v = static_cast<float>(std::sin(static_cast<double>(hash_name(t.name) % 1000) + 0.37 * static_cast<double>(e)));
    return t.kind == StateKind::weight ? to_float(to_bf16(v + 0.01f)) : t.kind == StateKind::master ? v : 1e9f;
  }

 private:
  SavedFile write_rank(const std::vector<SavedTensor>& tensors, int64_t rank) const {
    std::vector<Piece> pieces;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const SavedTensor& t = tensors[i];
      const int64_t columns = t.shape.rank == 2 ? t.shape[1] : 1, half = columns / 2, all = t.shape.numel();
      const bool by_columns = t.name.ends_with("output") && columns > 1;
      if (by_columns)
        add_pieces(pieces, static_cast<int32_t>(i), t, {.first = rank * half, .run = half, .stride = columns}, all / 2);
      else
        add_pieces(pieces, static_cast<int32_t>(i), t, {.first = rank * (all / 2)}, rank == 0 ? all / 2 : all - all / 2);
    }
    PieceFile file(NewCheckpoint::folder_of(dir_.path("run"), 7) / fmt::format("rank_{}.safetensors", rank), tensors, pieces, "run", 7);
    for (const Piece& p : pieces)
      for (int64_t e = 0; e < p.count; ++e) {
        const SavedTensor& t = tensors[static_cast<size_t>(p.tensor)];
        const float v = value(t, p.map.global(e));
        const bf16 narrow = to_bf16(v);
        if (t.dtype == DType::bf16)
          file.write(&narrow, sizeof narrow);
        else
          file.write(&v, sizeof v);
      }
    return file.finish();
  }

  TempDir dir_;
  Config config_;
};

TEST(HfExport, OfATrainingCheckpointOfAnyLayoutFromWeightsOrMasters) {
  const SplitCheckpoint saved;
  const TempDir dir;
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const std::string to = dir.path(std::string(name_of(dtype)));
    const ExportResult result = export_to(saved.folder(), to, {.dtype = dtype});
    EXPECT_EQ(result.notes.empty(), dtype == DType::bf16);
    const auto have = tensors_of(to);
    for (const HfTensor& t : hf_tensors(saved.config().model)) {
      SavedTensor from = t.tensor;
      from.kind = dtype == DType::bf16 ? StateKind::weight : StateKind::master;
      for (const HfPart& part : t.parts) {
        const HfValues& values = have.at(part.name);
        ASSERT_EQ(values.shape, part.shape);
        for (size_t e = 0; e < values.values.size(); ++e)
          ASSERT_EQ(values.values[e], SplitCheckpoint::value(from, part.first + static_cast<int64_t>(e))) << part.name << "[" << e << "]";
      }
    }
    EXPECT_EQ(nlohmann::json::parse(test::slurp(to + "/config.json"))["max_position_embeddings"], 48);
  }
  export_to(saved.folder(), dir.path("long"), {.max_length = 4096});
  EXPECT_EQ(nlohmann::json::parse(test::slurp(dir.path("long/config.json")))["max_position_embeddings"], 4096);
}

TEST(HfExport, RefusesAnExistingFolderAndLeavesNothingBehind) {
  const TempDir dir;
  const ImportResult imported = import_hf(hf_fixture("mha"), dir.path("imported"), {});
  EXPECT_EQ(message_of([&] { import_hf(hf_fixture("mha"), dir.path("imported"), {}); }),
            dir.path("imported") + " exists already; give a folder that does not");
  fs::create_directory(dir.path("there"));
  EXPECT_EQ(message_of([&] { export_to(imported.checkpoint, dir.path("there"), {}); }),
            dir.path("there") + " exists already; give a folder that does not");
  // The last piece is damaged: nothing is left of what was written before it was read.
  std::fstream file(imported.checkpoint / "part_00000.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x55');
  file.close();
  EXPECT_NE(message_of([&] { export_to(imported.checkpoint, dir.path("out"), {}); }).find("its checksum is wrong"), std::string::npos);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(dir.path())) left.push_back(entry.path().filename().string());
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"imported", "there"}));
}

TEST(HfImport, KeepsTheTokenizersFilesAndTheIdsForAnExport) {
  const TempDir dir;
  const std::string source = copy_of_fixture(dir, "mha");
  fs::copy(test::source_path("tests/fixtures/tokenizer/llama2.json"), source + "/tokenizer.json");
  dir.write("source/tokenizer_config.json", "{\"bos_token\": \"<s>\"}");
  edit_json(source + "/config.json", [](auto& c) { c["eos_token_id"] = {2, 7}; });
  const ImportResult imported = import_hf(source, dir.path("imported"), {});
  EXPECT_EQ(imported.tokenizer, imported.checkpoint / "tokenizer/tokenizer.json");
  EXPECT_EQ(test::slurp(imported.tokenizer.string()), test::slurp(source + "/tokenizer.json"));
  CheckpointReader reader(imported.checkpoint);
  const TokenIds ids = token_ids_of(nlohmann::json::parse(reader.index().find_record(kImportRecord)->json));
  EXPECT_EQ(ids, (TokenIds{.bos = {1}, .eos = {2, 7}}));
  EXPECT_EQ(reader.index().content, CheckpointContent::weights);
  EXPECT_EQ(config_of(reader).train.seq_len, 64);
  export_hf(reader, config_of(reader), dir.path("out"), {.ids = ids, .files = tokenizer_files_in(imported.checkpoint / kTokenizerFolder)});
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"})
    EXPECT_EQ(test::slurp(dir.path(std::string("out/") + name)), test::slurp(source + "/" + name)) << name;
  EXPECT_EQ(nlohmann::json::parse(test::slurp(dir.path("out/config.json")))["eos_token_id"], (nlohmann::json{2, 7}));
}

TEST(HfImport, TiedModelsMayHoldTheirHeadWhenItIsTheEmbedding) {
  const TempDir dir;
  for (const bool equal : {true, false}) {
    const std::string source = copy_of_fixture(dir, "mha");  // untied: its head becomes the embedding, or stays another matrix
    edit_json(source + "/config.json", [](auto& c) { c["tie_word_embeddings"] = true; });
    if (equal) {
      const SafetensorsHeader header = SafetensorsHeader::read(source + "/model.safetensors");
      const SafeTensor &head = *header.find(kHfHead), &embedding = *header.find(kHfEmbedding);
      std::string bytes = test::slurp(source + "/model.safetensors");
      bytes.replace(header.bytes + head.begin, head.end - head.begin, bytes, header.bytes + embedding.begin,
                    embedding.end - embedding.begin);
      dir.write("source/model.safetensors", bytes);
      EXPECT_EQ(import_message(source), "no exception");
    } else {
      EXPECT_EQ(import_message(source),
                source + ": config.json says tie_word_embeddings, but lm_head.weight is not equal to model.embed_tokens.weight");
    }
  }
}

// Rewrites the header of a safetensors file.
template <class Change>
void edit_header(const std::string& path, const Change& change) {
  const SafetensorsHeader header = SafetensorsHeader::read(path);
  const std::string all = test::slurp(path);
  auto json = nlohmann::ordered_json::parse(all.substr(8, header.bytes - 8));
  change(json);
  std::string text = json.dump();
  const uint64_t length = text.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << out << text << all.substr(header.bytes);
}

TEST(HfImport, NamesTensorsThatAreUnknownMissingOfAnotherShapeOrType) {
  const TempDir dir;
  std::string source = copy_of_fixture(dir, "mha");
  const auto rename = [](auto& json, const char* from, const char* to) { json[to] = json[from], json.erase(from); };
  edit_header(source + "/model.safetensors", [&](auto& h) {
    rename(h, "model.norm.weight", "model.layers.0.self_attn.q_proj.bias");
    h["model.layers.1.self_attn.q_proj.weight"]["shape"] = {16, 64};
    h["model.layers.0.mlp.down_proj.weight"]["dtype"] = "I16";
  });
  EXPECT_EQ(import_message(source),
            source +
                ":\n"
                "model.layers.0.mlp.down_proj.weight has type I16: weights that are quantized are not supported; F32, BF16 and F16 are\n"
                "model.layers.1.self_attn.q_proj.weight has shape (16, 64), and (32, 32) by config.json\n"
                "model.norm.weight is missing\n"
                "model.layers.0.self_attn.q_proj.bias is no tensor of a Llama");
  source = copy_of_fixture(dir, "mha");
  edit_json(source + "/config.json", [](auto& c) { c["num_hidden_layers"] = 1; });
  EXPECT_NE(import_message(source).find("model.layers.1.mlp.up_proj.weight is no tensor of a Llama"), std::string::npos);
}

TEST(HfImport, RefusesPicklesAndIndicesThatLeaveTheFolder) {
  const TempDir dir;
  std::string source = copy_of_fixture(dir, "mha");
  fs::rename(source + "/model.safetensors", source + "/pytorch_model.bin");
  EXPECT_NE(import_message(source).find("pytorch_model.bin is a pickle file, a format that can execute code"), std::string::npos);
  EXPECT_NE(import_message(dir.path("nothing")).find("is no folder"), std::string::npos);
  EXPECT_NE(import_message(dir.path()).find("has no config.json"), std::string::npos);
  for (const char* name : {"../mha/model.safetensors", "/etc/passwd", "..", "a/b.safetensors", "", "pytorch_model.bin"}) {
    source = copy_of_fixture(dir, "gqa");
    const std::string index = source + "/model.safetensors.index.json";
    edit_json(index, [&](auto& j) { j["weight_map"]["lm_head.weight"] = name; });
    EXPECT_EQ(import_message(source),
              fmt::format("{}: names '{}' as a shard; shards are safetensors files in the folder itself", index, name));
  }
  source = copy_of_fixture(dir, "gqa");
  const std::string index = source + "/model.safetensors.index.json";
  edit_json(index, [](auto& j) { j["weight_map"]["lm_head.weight"] = "model-00001-of-00004.safetensors"; });
  EXPECT_EQ(import_message(source), index + ": model-00001-of-00004.safetensors should hold lm_head.weight and does not");
  fs::remove(source + "/model-00002-of-00004.safetensors");
  EXPECT_NE(import_message(source).find("model-00002-of-00004.safetensors"), std::string::npos);
}

// Old files hold buffers that follow from the config.
TEST(HfImport, RotaryBuffersOfOldFilesAreLeftOut) {
  const TempDir dir;
  const std::string source = copy_of_fixture(dir, "mha"), file = source + "/model.safetensors";
  const uint64_t end = SafetensorsHeader::read(file).tensors.back().end;
  edit_header(file, [&](auto& h) {
    h["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{"dtype", "F32"}, {"shape", {4}}, {"data_offsets", {end, end + 16}}};
  });
  std::ofstream(file, std::ios::binary | std::ios::app) << std::string(16, '\x11');
  EXPECT_EQ(import_message(source), "no exception");
}

// One random change of a config, an index of shards or a header: a UsageError, or an import that an export can be made of.
TEST(HfImport, TwoHundredMutatedFoldersNeverCrash) {
  const TempDir dir;
  std::mt19937 random(12349);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  int refused = 0, taken = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string& name = test::hf_fixtures()[below(3)];
    const std::string source = copy_of_fixture(dir, name);
    std::vector<std::string> files = {"config.json", name == "gqa" ? "model-00001-of-00004.safetensors" : "model.safetensors"};
    if (name == "gqa") files.push_back("model.safetensors.index.json");
    const std::string& file = files[below(files.size())];
    std::string bytes = test::slurp(source + "/" + file);
    const size_t reach = std::min<size_t>(bytes.size(), 2500), at = below(reach);
    const std::vector<std::string> tokens = {"0", "-1", "null", "[]", "{}", "1e308", "18446744073709551615", "\"\"", "true", "4"};
    switch (below(5)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 1: bytes.resize(at); break;
      case 2: bytes.erase(at, below(20) + 1); break;
      case 3: bytes.insert(at, tokens[below(tokens.size())]); break;
      default:  // another value for a number
        if (const size_t digit = bytes.find_first_of("0123456789", at); digit < reach) {
          const size_t stop = bytes.find_first_not_of("0123456789.e-", digit);
          bytes.replace(digit, std::min(stop, bytes.size()) - digit, tokens[below(tokens.size())]);
        }
    }
    dir.write("source/" + file, bytes);
    fs::remove_all(dir.path("to"));
    fs::remove_all(dir.path("out"));
    try {
      const ImportResult result = import_hf(source, dir.path("to"), {});
      export_to(result.checkpoint, dir.path("out"), {});
      ++taken;
    } catch (const UsageError&) {
      ++refused;
      EXPECT_FALSE(fs::exists(dir.path("to"))) << i;
    }
  }
  EXPECT_GT(refused, 50);  // both happen
  EXPECT_GT(taken, 10);
}

}  // namespace
}  // namespace hlat
