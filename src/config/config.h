// The configuration: plain structs with their defaults. Each struct has one field list (config/fields.h) that drives
// YAML reading, key=value overrides, help, the generated reference, printing and the run record.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "config/policy.h"

namespace hlat {

struct RunConfig {
  std::string dir = "runs/default";  // the run folder
  uint64_t seed = 12349;             // initial weights and rounding noise follow from it
  bool tensorboard = true;           // write events.* next to metrics.jsonl
  int64_t sample_lines = 3;          // texts generated when training ends; 0 for none
  int64_t lease_s = 60;              // the run folder of a process that has been silent for longer may be taken over
  bool operator==(const RunConfig&) const = default;
};

struct ModelConfig {
  std::string preset;  // a known shape; other keys then override single values
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t ffn = 384;
  int64_t vocab = 512;  // 0: as many as the tokenizer has
  double rope_theta = 10000;
  std::string rope_scaling = "none";  // none | linear | llama3: how frequencies are stretched for texts longer than the model saw
  double rope_factor = 1;             // by how much
  double rope_low_freq_factor = 1;    // llama3: waves longer than rope_original_len / this are stretched in full
  double rope_high_freq_factor = 4;   // llama3: waves shorter than rope_original_len / this are left as they are
  int64_t rope_original_len = 8192;   // llama3: tokens the model saw before
  double norm_eps = 1e-5;
  bool tied = false;        // the output head uses the embedding matrix
  double init_std = 0.02;   // output projections use init_std / sqrt(2 * layers)
  bool scaled_init = true;  // false: they use init_std too
  bool coalesced = true;    // q, k and v are one matrix product, gate and up another; false: one each, with messages of their own

  int64_t kv() const { return kv_heads == 0 ? heads : kv_heads; }
  int64_t head_dim() const { return hidden / heads; }
  bool operator==(const ModelConfig&) const = default;
};

struct TrainConfig {
  int64_t steps = 100;
  int64_t tokens = 0;  // above 0: the length of the run in tokens, instead of steps
  double epochs = 0;   // above 0: the length of the run in passes over the data, instead of steps
  int64_t seq_len = 128;
  int64_t global_batch = 8;  // sequences per optimizer step
  int64_t micro_batch = 1;   // sequences per forward and backward; 0: as many as fit
  PrecisionKind precision = PrecisionKind::fp32;
  Recompute recompute;        // none | selective | full | every:K
  int64_t loss_chunk = 1024;  // tokens whose logits exist at one time
  bool operator==(const TrainConfig&) const = default;
};

// Single choices of a precision policy; empty: as train.precision has it. Rows of choices are made by param/precision.h.
struct PrecisionConfig {
  std::string activations, weights, masters, moments;  // f32 | bf16; masters: f32 | none
  std::string grads;                                   // accumulation over micro-batches: f32 | bf16
  std::string dp_sums, tp_sums;                        // what ranks add up, gradients and partial products: f32 | bf16
  std::string softmax, norms, loss;                    // arithmetic of these operators: f32 | bf16
  std::string round_weights, round_moments;            // nearest | stochastic
  std::string round_activations, round_sums;           // nearest | stochastic; sums: accumulated and summed gradients
  std::string products;                                // of linear layers: fp8 | activations (their type)
  std::string fp8_grads;                               // gradients as operands of those: e5m2 | e4m3
  std::string weight_grads;                            // products that make gradients of weights: fp8 | bf16
  bool keyed_noise = true;  // noise is a function of the global element; false: ranks draw their own, and replicas drift apart
  bool operator==(const PrecisionConfig&) const = default;
};

struct ParallelConfig {
  int64_t tp = 1;                  // tensor parallel ranks
  int64_t pp = 1;                  // pipeline stages
  int64_t dp = 0;                  // data parallel replicas; 0: auto, ranks / (tp * pp)
  bool sequence = false;           // between tensor parallel regions tokens are split over tp
  bool zero1 = true;               // optimizer state is sharded over dp
  int64_t chunks = 1;              // model pieces per pipeline stage (interleaved schedule)
  std::vector<int64_t> cuts = {};  // first layer of each piece but the first, in the order of the layers; empty: even
  int64_t bucket_mb = 32;          // gradient bytes reduced in one go, MiB
  int64_t health_every = 100;      // steps between comparisons of the replicas; 0: never
  int64_t timeout_s = 600;         // a peer silent for longer ends the run
  int64_t start_timeout_s = 3600;  // each phase of the start-up must end within this time
  std::string comm = "auto";       // auto | nccl | staged: how ranks on GPUs exchange tensors

  int64_t pieces() const { return pp * chunks; }
  int64_t ranks() const { return tp * pp * dp; }  // 0 while dp is auto
  bool operator==(const ParallelConfig&) const = default;
};

struct OptimConfig {
  double lr = 3e-4;
  ScheduleKind schedule = ScheduleKind::cosine_clamped;
  int64_t warmup = 0;
  int64_t schedule_steps = 0;  // where the schedule ends; 0: train.steps
  double min_ratio = 0.1;      // floor as a share of lr
  double decay_share = 0.1;    // warmup_stable_decay: share of steps in the final decay
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  bool decay_norms = true;
  double clip = 1.0;  // global gradient norm; 0: no clipping
  bool operator==(const OptimConfig&) const = default;
};

using Weights = std::map<std::string, double>;  // by name of the source

struct SourceConfig {
  std::string name;   // empty: the path
  std::string path;   // a pattern
  double weight = 1;  // share of the tokens, relative to the other sources
  std::string field = "text";
  std::string separator = "";   // between the documents of a text file; empty: a file is one document
  std::string validation = "";  // a pattern of files that are only validated on; empty: none

  const std::string& id() const { return name.empty() ? path : name; }
  bool operator==(const SourceConfig&) const = default;
};

// From its first step on, weights take the place of those of the sources; a source that is not named gets nothing.
struct DataStage {
  int64_t from_step = 0;    // its first step; 0: from_tokens tells
  int64_t from_tokens = 0;  // it begins with the first step that has this many tokens behind it
  Weights weights;

  int64_t first_step(int64_t tokens_per_step) const {
    return from_step > 0 ? from_step : (from_tokens + tokens_per_step - 1) / tokens_per_step + 1;
  }
  bool operator==(const DataStage&) const = default;
};

struct DataConfig {
  bool embedded = true;  // train on the embedded corpus when no sources are named
  std::string tokenizer;
  std::vector<SourceConfig> sources = {};
  std::vector<DataStage> stages = {};
  double validation = 0;       // share of the documents held out
  int64_t validate_every = 0;  // steps; 0: only when training ends
  int64_t validate_rows = 0;   // 0: train.global_batch
  bool bos = false;
  std::string eos;        // token text; empty: as the tokenizer's file tells
  int64_t workers = 0;    // 0: one for every four threads of the rank
  int64_t prefetch = 2;   // steps of rows that may lie ready
  std::string cache_dir;  // empty: next to the data
  double bad_share = 0.01;
  bool allow_broken = false;  // train on what can be read of a broken file
  uint64_t seed = 1234;       // document order
  bool operator==(const DataConfig&) const = default;
};

struct CheckpointConfig {
  int64_t every = 1000;              // steps between saves; 0: not by steps
  double minutes = 0;                // between saves; 0: not by time
  bool at_end = true;                // save when training ends
  int64_t keep = 3;                  // the latest so many
  int64_t keep_every = 0;            // and for good the first at or after each multiple of this; 0: none
  int64_t weights_every_tokens = 0;  // bf16 copies of the weights alone, kept for good; 0: none
  std::string dir;                   // empty: checkpoints in the run folder
  int64_t staging_mb = 0;            // host memory of a rank that state is copied to; 0: as much as the state takes, where it fits
  int64_t max_wait_s = 60;           // an update waits for a save no longer than this; the save is then given up
  int64_t grace_s = 60;              // from a signal to the end of the process, the save included
  std::string resume_from;           // a checkpoint, or a step of this run; empty: the latest of the run folder
  std::string init_from;             // a checkpoint whose weights a new run starts with; empty: none
  bool operator==(const CheckpointConfig&) const = default;
};

struct EvalConfig {
  int64_t every = 0;         // steps between evaluations of tasks while the model trains; 0: not by steps
  int64_t every_tokens = 0;  // tokens between them; 0: not by tokens
  bool at_end = false;       // also when training ends
  std::string tasks;         // names, with commas between them
  std::string data;          // the folder of evaluation data
  std::string task_dir;      // a folder of own tasks; empty: none
  int64_t limit = 0;         // examples of each task, the first so many; 0: all
  int64_t cache_tokens = 0;  // keys and values that are kept; 0: what a micro-batch and one sequence need

  bool in_loop() const { return every > 0 || every_tokens > 0 || at_end; }
  bool operator==(const EvalConfig&) const = default;
};

struct DeviceConfig {
  std::string backend = "auto";  // auto | cpu | cuda
  int64_t threads = 0;           // 0: its cores / local ranks that share them
  std::string isa = "auto";      // own CPU kernels: auto | amx | avx512 | avx2 | generic
  bool graphs = true;            // GPU: record the kernels of a micro-batch once and launch them as one
  bool deterministic = true;     // the same run gives the same bits; false: also kernels for which that does not hold
  bool operator==(const DeviceConfig&) const = default;
};

// What happens when a loss or a gradient norm is off.
struct LossConfig {
  std::string rule = "robust";            // none | robust | hlat: what a spike is
  int64_t window = 64;                    // robust: steps of the running median
  double factor = 8;                      // robust: a spike lies so many spreads above it
  double norm_rise = 0.1;                 // hlat: a gradient norm so far above its mean over the last 20 steps
  std::string on_spike = "continue";      // continue | skip | rollback | stop
  std::string on_nonfinite = "rollback";  // skip | rollback | stop
  int64_t skips = 10;                     // at most so many in the last 1000 steps
  std::string alarms = "all";             // all | none | names of rules, with commas between them (docs/alarms.md)
  std::string on_alarm = "continue";      // continue | rollback | stop
  bool operator==(const LossConfig&) const = default;
};

// What is measured inside the step besides loss and norms (record/monitors.h).
struct MonitorConfig {
  int64_t every = 10;       // steps; 0: never
  int64_t probe_every = 0;  // steps between losses of the probe batch; 0: as rare as it takes to cost little
  int64_t positions = 16;   // parts of a sequence whose losses are told apart
  bool operator==(const MonitorConfig&) const = default;
};

// hlat launch: where ranks run, and what happens when one of them does not.
struct LaunchConfig {
  std::string hosts;             // "node1:8,node2:8", or a file of "node1 slots=8"; empty: those of the job, or this host
  int64_t ranks = 0;             // 0: as many as the layout needs, or as there are slots
  int64_t spares = 0;            // hosts, the last of the list, that only replace others
  std::string starter = "auto";  // auto | mpirun | srun
  std::string remote = "ssh";    // runs a command on another host: REMOTE HOST COMMAND
  std::string mpirun;            // more words for mpirun
  int64_t restarts = 100;        // at most
  int64_t same_failure = 3;      // a failure that comes so often at one step is not restarted blindly
  int64_t backoff_s = 60;        // the longest pause before a restart
  int64_t hang_s = 0;            // without progress that make a hang, after the start; 0: learned from the run
  int64_t start_hang_s = 120;    // the same while ranks start
  int64_t patience_s = 30;       // for a host that is gone, before the run goes on without it
  bool elastic = true;           // go on with fewer ranks
  double straggler = 1.5;        // a rank slower than its peers by this factor is reported; 0: none is
  int64_t straggler_steps = 50;  // over so many steps
  bool evict = false;            // a straggler's host is replaced or left out
  std::string check = "none";    // none | start | restarts: when hlat check --short and --model run before the ranks
  bool operator==(const LaunchConfig&) const = default;
};

// Faults that are planted, for tests and drills.
struct FaultConfig {
  std::string inject;  // "kill rank=1 step=20; hang rank=0 step=40"
  double every_s = 0;  // random faults, so far apart on average; 0: none
  std::string kinds;   // of the random ones; empty: all that recover on the same mesh
  uint64_t seed = 1;   // of the random ones
  bool operator==(const FaultConfig&) const = default;
};

struct Config {
  RunConfig run;
  ModelConfig model;
  TrainConfig train;
  PrecisionConfig precision;
  ParallelConfig parallel;
  OptimConfig optim;
  DataConfig data;
  CheckpointConfig checkpoint;
  EvalConfig eval;
  LossConfig loss;
  MonitorConfig monitor;
  LaunchConfig launch;
  FaultConfig fault;
  DeviceConfig device;
  bool operator==(const Config&) const = default;
};

}  // namespace hlat
