// Loading a checkpoint: into other precision policies, what is refused and in which words, who reads how much, and that ranks fail
// together.
#include "checkpoint/load_state.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <set>
#include <typeinfo>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/agreement.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/file_input.h"
#include "support/host_memory.h"
#include "support/layout_run.h"
#include "support/precision_rows.h"
#include "support/saved_run.h"
#include "support/temp_dir.h"
#include "support/thread_comm.h"

namespace hlat {
namespace {

using test::TempDir;

constexpr int64_t kSavedStep = 2;

Config small(PrecisionKind precision = PrecisionKind::fp32) {
  Layout layout{.layers = 2};
  layout.precision = precision;
  Config c = layout.config();
  c.optim.lr = 1e-3;
  return c;
}

// The same model under every policy.
Config fit_for_all(PrecisionKind precision) {
  Config c = small(precision);
  take_fp8_shapes(c);
  return c;
}

Config on_ranks(Config c, int tp, int pp, int dp, bool zero1 = true) {
  c.parallel.tp = tp, c.parallel.pp = pp, c.parallel.dp = dp, c.parallel.zero1 = zero1;
  return c;
}

std::filesystem::path saved_in(const TempDir& dir) { return checkpoint_path(dir.path(), kSavedStep); }

bool has(const std::vector<std::string>& lines, const std::string& line) { return std::count(lines.begin(), lines.end(), line) == 1; }

// The message with which all ranks refuse, the same on each; empty: it was loaded.
template <class Kind>
std::string refusal(const Config& config, const std::filesystem::path& folder, LoadWhat what) {
  std::set<std::string> messages;
  int count = 0;
  load_on_ranks(config, folder, what, [&](int, const std::exception& e) {
    ++count;
    messages.insert(e.what());
    EXPECT_EQ(typeid(e), typeid(Kind)) << e.what();
  });
  if (messages.empty()) return {};
  EXPECT_EQ(count, mesh_shape(config.parallel).ranks());
  EXPECT_EQ(messages.size(), 1u) << *messages.begin() << "\n" << *messages.rbegin();
  return *messages.begin();
}

using enum PrecisionKind;
constexpr std::array kPolicies = {fp32, mixed, mixed_sr, bf16_sr, bf16, fp8, fp8_sr};

TEST(LoadState, EveryPrecisionPolicyLoadsEveryOther) {
  for (const PrecisionKind from : kPolicies) {
    const TempDir dir;
    const TrainedPart saved = run_and_save(fit_for_all(from), dir.path(), kSavedStep, 0);
    for (const PrecisionKind to : kPolicies)
      for (const LoadWhat what : {LoadWhat::training, LoadWhat::weights}) {
        const LoadedPart loaded = load_and_run(fit_for_all(to), saved_in(dir), 0, what);
        expect_equal_state(loaded.begin.tensors, converted(saved.begin.tensors, to, what),
                           fmt::format("{} to {}", name_of(from), name_of(to)));
      }
  }
}

TEST(LoadState, ConversionsAreToldOnceEach) {
  using Lines = std::vector<std::string>;
  const auto told = [](PrecisionKind from, PrecisionKind to) {
    const TempDir dir;
    run_and_save(fit_for_all(from), dir.path(), kSavedStep, 0);
    return load_and_run(on_ranks(fit_for_all(to), 1, 2, 1), saved_in(dir), 0).conversions;
  };
  EXPECT_EQ(told(mixed_sr, mixed_sr), Lines{});
  EXPECT_EQ(told(mixed_sr, mixed), Lines{});
  EXPECT_EQ(told(mixed, fp32), Lines{"weights f32, from the masters: exact"});
  EXPECT_EQ(told(fp32, mixed), (Lines{"weights bf16, rounded from f32 to the nearest", "masters f32, from the weights: exact"}));
  EXPECT_EQ(told(mixed, bf16_sr), (Lines{"no masters: this precision has none", "moments bf16, rounded from f32 to the nearest"}));
  EXPECT_EQ(told(bf16, mixed), (Lines{"masters f32, widened from the bf16 weights: exact", "moments f32, widened from bf16: exact"}));
  EXPECT_EQ(told(bf16_sr, fp32), (Lines{"weights f32, widened from bf16: exact", "moments f32, widened from bf16: exact"}));
  EXPECT_EQ(told(fp8, fp8), Lines{});
  EXPECT_EQ(told(fp8_sr, fp8_sr), Lines{});
}

TEST(LoadState, WeightsAloneStartANewRun) {
  const TempDir dir;
  const TrainedPart saved = run_and_save(small(bf16), dir.path(), kSavedStep, 0, CheckpointContent::weights);
  const LoadedPart loaded = load_and_run(on_ranks(small(mixed), 2, 1, 2), saved_in(dir), 1, LoadWhat::weights);
  expect_equal_state(loaded.begin.tensors, converted(saved.begin.tensors, mixed, LoadWhat::weights), "bf16 weights");
  EXPECT_TRUE(has(loaded.conversions, "no moments: the optimizer starts anew"));
  EXPECT_EQ(loaded.end.data.step(), 1) << "the data begins anew";
  const std::string message = refusal<UsageError>(on_ranks(small(bf16), 1, 2, 1), saved_in(dir), LoadWhat::training);
  EXPECT_NE(message.find("checkpoint.init_from"), std::string::npos) << message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
}

TEST(LoadState, ADifferentModelIsRefusedWithEachTensorAndBothShapes) {
  const TempDir dir;
  run_and_save(small(), dir.path(), kSavedStep, 0);
  const auto message = [&](auto change) {
    Config c = on_ranks(small(), 1, 2, 1);
    change(c.model);
    return refusal<UsageError>(c, saved_in(dir), LoadWhat::training);
  };
  const auto expect = [](const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  };
  expect(message([](ModelConfig& m) { m.layers = 3; }),
         {saved_in(dir).c_str(), "layers.2.mlp.down: (64, 84) in this model, not in the checkpoint", "layers.2.attention.qkv",
          "layers.2.norm1"});
  expect(message([](ModelConfig& m) { m.vocab = 97; }), {"embedding: (101, 64) in the checkpoint, (97, 64) in this model",
                                                         "head.output: (101, 64) in the checkpoint, (97, 64) in this model"});
  expect(message([](ModelConfig& m) { m.ffn = 96; }), {"layers.0.mlp.down: (64, 84) in the checkpoint, (64, 96) in this model",
                                                       "layers.1.mlp.down: (64, 84) in the checkpoint, (64, 96) in this model"});
  expect(message([](ModelConfig& m) { m.hidden = 32; }), {"embedding: (101, 64)", "layers.1.mlp.down: (64, 84)", "head.norm: (64)"});
  // Fewer layers: each tensor of the model is there, and yet half of the checkpoint's model would be lost.
  Config one = small();
  one.model.layers = 1;
  expect(refusal<UsageError>(one, saved_in(dir), LoadWhat::weights), {"layers.1.mlp.down: (64, 84) in the checkpoint, not in this model"});
}

TEST(LoadState, TiedToUntiedOnlyAsWeightsAndUntiedToTiedNever) {
  const auto with = [](bool tied) {
    Config c = small(mixed);
    c.model.tied = tied;
    return c;
  };
  const TempDir tied, untied;
  const TrainedPart saved = run_and_save(with(true), tied.path(), kSavedStep, 0);
  run_and_save(with(false), untied.path(), kSavedStep, 0);
  const LoadedPart loaded = load_and_run(on_ranks(with(false), 1, 2, 2), saved_in(tied), 1, LoadWhat::weights);
  for (const std::string kind : {"weight ", "master "})
    EXPECT_EQ(loaded.begin.tensors.at(kind + "head.output"), saved.begin.tensors.at(kind + "embedding"));
  EXPECT_TRUE(has(loaded.conversions, "head.output from the embedding, to which the checkpoint ties it"))
      << "rank 0, which logs, has no head";
  const std::string kept = refusal<UsageError>(on_ranks(with(false), 1, 2, 1), saved_in(tied), LoadWhat::training);
  EXPECT_NE(kept.find("head.output"), std::string::npos) << kept;
  EXPECT_NE(kept.find("checkpoint.init_from"), std::string::npos) << kept;
  for (const LoadWhat what : {LoadWhat::training, LoadWhat::weights}) {
    const std::string lost = refusal<UsageError>(on_ranks(with(true), 1, 2, 1), saved_in(untied), what);
    EXPECT_NE(lost.find("head.output: (101, 64) in the checkpoint, not in this model"), std::string::npos) << lost;
    EXPECT_NE(lost.find("the head's own matrix would be lost"), std::string::npos) << lost;
  }
}

TEST(LoadState, AStoreForEvaluationTakesTheWeightsAlone) {
  const TempDir dir;
  const TrainedPart saved = run_and_save(small(mixed), dir.path(), kSavedStep, 0);
  const Config c = on_ranks(small(fp32), 2, 1, 2);
  uint64_t masters = 0;
  for (const SavedTensor& t : read_index(saved_in(dir)).tensors)
    if (t.kind == StateKind::master) masters += static_cast<uint64_t>(t.shape.numel()) * 4;
  std::atomic<uint64_t> bytes = 0;
  run_thread_ranks(4, [&](Comm& world) {
    CpuBackend backend({.threads = 1, .isa = "auto"});
    Assembly assembly(c, backend, world, 4, ParamUse::weights);
    PlacedModel& model = assembly.build();
    const ParamStore& params = model.executor().params();
    CheckpointReader reader(saved_in(dir));
    const LoadResult result = load_state(reader, params, model.mesh(), model.device(), LoadWhat::weights, 1);
    EXPECT_EQ(result.conversions, std::vector<std::string>{"weights f32, from the masters: exact"});
    bytes += result.bytes_read;
    for (ParamId id = 0; id < params.size(); ++id) {
      const Tensor w = params.weight(id);
      const std::vector<double>& whole = saved.begin.tensors.at("master " + params.spec(id).name);
      int64_t wrong = 0;
      for (const FlatRun& run : params.spec(id).slice.flat_runs(0, w.numel()))
        for (int64_t e = run.begin; e < run.end; ++e) wrong += load_f64(w, e) != whole[static_cast<size_t>(run.map.global(e - run.begin))];
      EXPECT_EQ(wrong, 0) << params.spec(id).name;
    }
  });
  EXPECT_LT(bytes, 4 * masters) << "tp ranks share pieces of rows, nobody reads moments";
}

// One replica reads, the others receive: with or without ZeRO-1. Where the shares of two ranks meet inside a piece, both read it.
TEST(LoadState, EveryByteIsReadByOneDpRank) {
  Config c = small(mixed);
  c.model.layers = 8;
  const TempDir dir;
  run_and_save(on_ranks(c, 1, 1, 2), dir.path(), kSavedStep, 0);
  const auto bytes = static_cast<double>(read_index(saved_in(dir)).bytes());
  for (const bool zero1 : {false, true}) {
    const LoadedPart loaded = load_and_run(on_ranks(c, 1, 1, 4, zero1), saved_in(dir), 0);
    EXPECT_GT(static_cast<double>(loaded.bytes_read), 0.9 * bytes);
    EXPECT_LT(static_cast<double>(loaded.bytes_read), 1.2 * bytes) << "zero1 " << zero1;
  }
}

void flip_last_byte(const std::filesystem::path& file) {
  std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
  f.seekg(-1, std::ios::end);
  const auto byte = static_cast<char>(f.get());
  f.seekp(-1, std::ios::end);
  f.put(static_cast<char>(byte ^ 0x10));
}

TEST(LoadState, DamageThatOneRankOfFourFindsEndsAllFourAlike) {
  const Config c = on_ranks(small(), 1, 1, 4);
  const TempDir dir;
  run_and_save(c, dir.path(), kSavedStep, 0);
  const CheckpointIndex index = read_index(saved_in(dir));
  ASSERT_EQ(index.files.size(), 4u);
  EXPECT_EQ(refusal<DamagedCheckpoint>(c, saved_in(dir), LoadWhat::training), "");
  const std::string& file = index.files[2].name;
  flip_last_byte(saved_in(dir) / file);
  const std::string message = refusal<DamagedCheckpoint>(c, saved_in(dir), LoadWhat::training);
  EXPECT_NE(message.find("rank "), std::string::npos) << message;
  EXPECT_NE(message.find(file), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << "one rank reads that file: " << message;
  std::filesystem::remove(saved_in(dir) / file);
  EXPECT_NE(refusal<DamagedCheckpoint>(c, saved_in(dir), LoadWhat::training).find(file + " is missing"), std::string::npos);
}

TEST(LoadState, RanksThatSeeDifferentCheckpointsExchangeNothing) {
  const Config c = on_ranks(small(), 1, 1, 2);
  const TempDir one, other;
  run_and_save(c, one.path(), kSavedStep, 0);
  run_and_save(c, other.path(), kSavedStep + 1, 0);
  std::atomic<int> refused = 0;
  run_thread_ranks(2, [&](Comm& world) {
    CpuBackend backend({.threads = 1, .isa = "auto"});
    Assembly assembly(c, backend, world, 2);
    PlacedModel& model = assembly.build();
    CheckpointReader reader(world.rank() == 0 ? saved_in(one) : checkpoint_path(other.path(), kSavedStep + 1));
    try {
      load_state(reader, model.executor().params(), model.mesh(), model.device(), LoadWhat::training, 1);
    } catch (const FaultError& e) {
      refused += std::string_view(e.what()).find("ranks see different checkpoints") != std::string_view::npos;
    }
    world.barrier();
  });
  EXPECT_EQ(refused, 2);
}

TEST(LoadState, AFileThatRank0SeesAndAnotherRankDoesNotIsNoDamage) {
  const Config c = on_ranks(small(), 1, 1, 2);
  const TempDir one, stale;
  run_and_save(c, one.path(), kSavedStep, 0);
  std::filesystem::copy(saved_in(one), saved_in(stale));
  std::filesystem::remove(saved_in(stale) / read_index(saved_in(one)).files[1].name);
  for (const bool rank_0_sees_it : {true, false}) {
    std::atomic<int> faults = 0, damaged = 0;
    run_thread_ranks(2, [&](Comm& world) {
      CpuBackend backend({.threads = 1, .isa = "auto"});
      Assembly assembly(c, backend, world, 2);
      PlacedModel& model = assembly.build();
      CheckpointReader reader(rank_0_sees_it && world.rank() == 0 ? saved_in(one) : saved_in(stale));
      try {
        load_state(reader, model.executor().params(), model.mesh(), model.device(), LoadWhat::training, 1);
      } catch (const FaultError& e) {
        faults += std::string_view(e.what()).find("rank 0 sees all files") != std::string_view::npos;
      } catch (const DamagedCheckpoint& e) {
        damaged += std::string_view(e.what()).find("is missing") != std::string_view::npos;
      }
      world.barrier();
    });
    EXPECT_EQ(faults, rank_0_sees_it ? 2 : 0);
    EXPECT_EQ(damaged, rank_0_sees_it ? 0 : 2);
  }
}

// Collective, like together() itself.
template <class Kind>
void expect_ends_alike(const Mesh& mesh, const std::string& text, const std::function<void()>& work) {
  try {
    together(mesh, work);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::exception& e) {
    EXPECT_EQ(typeid(e), typeid(Kind)) << e.what();
    EXPECT_EQ(std::string(e.what()), text);
  }
}

TEST(Agreement, AllRanksThrowWhatAnyRankMet) {
  Config c = on_ranks(small(), 2, 2, 2);
  run_thread_ranks(8, [&](Comm& world) {
    const Mesh mesh(c, world, [](std::unique_ptr<Comm> comm) { return comm; });
    const int rank = world.rank();
    EXPECT_NO_THROW(together(mesh, [] {}));
    expect_ends_alike<FaultError>(mesh, "rank 5: disk", [&] {
      if (rank == 5) throw FaultError("disk");
    });
    expect_ends_alike<DamagedCheckpoint>(mesh, "rank 3: torn\nrank 6: torn", [&] {
      if (rank == 3 || rank == 6) throw DamagedCheckpoint("torn");
      if (rank == 0) throw FaultError("disk");
    });
    expect_ends_alike<MissingBytes>(mesh, "rank 4: missing", [&] {
      if (rank == 4) throw MissingBytes("missing");
      if (rank == 0) throw FaultError("disk");
    });
    expect_ends_alike<DamagedCheckpoint>(mesh, "rank 3: torn", [&] {
      if (rank == 3) throw DamagedCheckpoint("torn");
      if (rank == 4) throw MissingBytes("missing");
    });
    expect_ends_alike<UsageError>(mesh, "rank 7: wrong", [&] {
      if (rank == 7) throw UsageError("wrong");
      if (rank == 1) throw DamagedCheckpoint("torn");
    });
    const auto bug = [&] {
      if (rank == 2) throw std::logic_error("bug");
    };
    if (rank == 2)
      expect_ends_alike<std::logic_error>(mesh, "bug", bug);
    else
      expect_ends_alike<Error>(mesh, "rank 2: bug", bug);
    EXPECT_EQ(union_over(mesh, {"same", fmt::format("stage {}", mesh.coord().pp)}),
              (std::vector<std::string>{"same", "stage 0", "stage 1"}));
  });
}

}  // namespace
}  // namespace hlat
