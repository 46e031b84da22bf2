// A machine model as data: what a rank's device, its links and its node can do and cost (machines/*.yaml, or a file of the user). Rates are
// sustained ones, of hlat's own ops where they were measured (`hlat bench machine`); where not, shares of data-sheet figures. The keys of
// the file are those of the figures below; machine_file.h reads and writes it, machine_library.h finds it, machine_clock.h tells times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/comm.h"
#include "ops/cost.h"
#include "plan/figure.h"
#include "tensor/dtype.h"

namespace hlat {

// One measured product: c (m, n) of `out` = a (m, k) b (k, n) of `type`; of FP8 that is the type of a, and b is E4M3. Times have the op's
// launch in them.
struct MatmulRow {
  DType type = DType::f32, out = DType::f32;
  uint8_t form = 0;  // as in TracedOp: 1 a transposed, 2 b transposed, 4 added to what is there, 8 fast sums of FP8
  int64_t m = 0, n = 0, k = 0;
  double flops_per_s = 0;
  bool operator==(const MatmulRow&) const = default;
};
std::string form_text(uint8_t form);  // "nn", "nt", "tn", "tt"; with "+" where it adds, " fast" where sums are fast

struct AttentionRow {
  bool backward = false;
  DType type = DType::f32;
  int64_t heads = 0;  // of all sequences: heads x sequences
  int64_t tokens = 0, head_dim = 0;
  double flops_per_s = 0;  // as the op counts them
  bool operator==(const AttentionRow&) const = default;
};

// Of an op that is bound by memory. type: that of a step's activations, which the bytes of an op alone do not tell.
struct MemoryRow {
  OpKind op = OpKind::cast;
  DType type = DType::f32;
  double bytes = 0, bytes_per_s = 0;  // as the op counts them
  bool operator==(const MemoryRow&) const = default;
};

// What a rank with `threads` threads, more than the rates were measured with, keeps of speed in proportion to its threads.
struct ThreadShare {
  int threads = 0;  // 0: not measured
  Figure products{"rates.thread_share.products", Unit::share, "the share of proportional speed that products keep with more threads"};
  Figure attention{"rates.thread_share.attention", Unit::share, "the share of proportional speed that attention keeps with more threads"};
  Figure others{"rates.thread_share.others", Unit::share, "the share of proportional speed that other ops keep with more threads"};
  bool operator==(const ThreadShare&) const = default;
};

struct Rates {
  std::string source, date;  // of the tables
  Figure launch{"rates.launch", Unit::seconds, "the least time that an op takes"};
  Figure matmul_share{"rates.matmul_share", Unit::share, "the share of `peak` that products sustain"};
  Figure fp8_share{"rates.fp8_share", Unit::share, "the share of peak.fp8 that products of FP8 sustain"};
  Figure attention_share{"rates.attention_share", Unit::share, "the share of `peak` that attention sustains"};
  Figure bandwidth_share{"rates.bandwidth_share", Unit::share, "the share of memory_bandwidth that other ops sustain"};
  ThreadShare thread_share;  // on host cores
  std::vector<MatmulRow> matmul;
  std::vector<AttentionRow> attention;
  std::vector<MemoryRow> memory_ops;
  bool operator==(const Rates&) const = default;
};

enum class CollectiveAlgorithm : uint8_t { ring, tree, fastest };

struct NodeLink {
  Figure latency{"links.node.latency", Unit::seconds, "the time of an empty message between ranks of a node"};
  Figure bytes_per_s{"links.node.bytes_per_s", Unit::bytes_per_s, "what a rank sends to ranks of its node, in one direction"};
  bool operator==(const NodeLink&) const = default;
};

struct NetworkLink {
  Figure latency{"links.network.latency", Unit::seconds, "the time of an empty message between nodes"};
  Figure bytes_per_s{"links.network.bytes_per_s", Unit::bytes_per_s,
                     "what all ranks of a node together send to other nodes, in one direction"};
  bool operator==(const NetworkLink&) const = default;
};

// One measured collective or message (kind send: all ranks at once, each to the next) between ranks of one node.
struct CollectiveRow {
  CommKind op = CommKind::all_reduce;
  int ranks = 2;
  double bytes = 0, seconds = 0;  // of the whole tensor
  bool operator==(const CollectiveRow&) const = default;
};

struct Links {
  std::string source, date;  // of the rows
  NodeLink node;
  NetworkLink network;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  Figure overlap_cost{"links.overlap_cost", Unit::share, "the share of its speed that a device loses while a collective runs beside it"};
  Figure sum_bytes_per_s{"links.sum_bytes_per_s", Unit::bytes_per_s, "terms of a collective's sum that a rank on host cores reads"};
  std::vector<CollectiveRow> measured;  // these hold before the figures, for groups of as many ranks
  bool operator==(const Links&) const = default;
};

enum class PriceModel : uint8_t { on_demand, reserved_1y, reserved_3y, spot };
inline constexpr int kPriceModels = 4;
std::string_view name_of(PriceModel model);

struct Price {
  PriceModel model = PriceModel::on_demand;
  std::string region;
  Figure dollars_per_hour{"prices.dollars_per_hour", Unit::dollars_per_hour, "the price of a node and hour"};
  bool operator==(const Price&) const = default;
};

struct Carbon {
  std::string region;
  Figure grams_per_kwh{"carbon.grams_per_kwh", Unit::grams_per_kwh, "the CO2 of a region's electricity"};
  bool operator==(const Carbon&) const = default;
};

struct Machine {
  std::string file;           // where it was read, for messages; no part of the file
  std::string name;           // "p5en"
  std::string title, device;  // in words: the node, and what a rank has of it
  int ranks_per_node = 1;     // 0: any number (host cores)
  int cores = 0;              // above 0: ranks are processes that share the cores of a host
  int threads = 1;            // of a rank, that the rates were measured with
  int capability = 0;         // of an NVIDIA GPU: 90 for sm_90, whose scratch a plan then has; 0: none

  Figure memory{"memory", Unit::bytes, "the memory that a program can get, per rank"};
  Figure host_memory{"host_memory", Unit::bytes, "the memory of the node's host"};
  Figure memory_bandwidth{"memory_bandwidth", Unit::bytes_per_s, "the bandwidth of a rank's memory"};
  Figure peak_bf16{"peak.bf16", Unit::flops_per_s, "the bf16 peak of a rank, dense"};
  Figure peak_f32{"peak.f32", Unit::flops_per_s, "the f32 peak of a rank, without reduced precision"};
  Figure peak_fp8{"peak.fp8", Unit::flops_per_s, "the fp8 peak of a rank, dense"};
  Figure context{"libraries.context", Unit::bytes, "the memory that the device's driver and libraries take, per rank"};
  Figure nccl{"libraries.nccl", Unit::bytes, "the buffers of the library of collectives, per rank and group"};
  Rates rates;
  Links links;
  Figure disk_write{"disk.write", Unit::bytes_per_s, "what a node writes to the disk of its checkpoints, with fsync"};
  Figure disk_read{"disk.read", Unit::bytes_per_s, "what a node reads from the disk of its checkpoints"};
  Figure step_overhead{"step_overhead", Unit::seconds, "the host's own work in a step, outside of ops and collectives"};
  std::vector<Price> prices;
  Figure power{"power.node", Unit::watts, "the power of a node under load"};
  std::vector<Carbon> carbon;
  Figure node_mtbf{"faults.node_mtbf", Unit::seconds, "the mean time between failures of a node"};
  Figure restart{"faults.restart", Unit::seconds,
                 "the time from when a failure is known to the next step, without the work that is repeated"};

  // Whether the device multiplies FP8: of a GPU its capability tells, of another device whether the file has a peak of FP8; host cores do
  // not. Where none does, hlat makes bf16 of both operands and multiplies those.
  bool multiplies_fp8() const;
  double need(const Figure& figure) const { return figure.need(file); }  // UsageError, with the key, where it is empty
  const Figure& peak(DType type) const { return is_fp8(type) ? peak_fp8 : type == DType::bf16 ? peak_bf16 : peak_f32; }
  bool operator==(const Machine&) const = default;
};

// All figures that a file has once, in its order; those of prices and carbon are in their lists.
std::vector<Figure*> figures_of(Machine& m);
std::vector<const Figure*> figures_of(const Machine& m);

// The price of a node and hour. UsageError where the file has none for the model and region (empty: the first), or an empty one.
double price_of(const Machine& m, PriceModel model, const std::string& region = "");

}  // namespace hlat
