// Ops of known sizes that can be run alone: a shape table from small to large, and the ops of a given step. A case places its tensors in
// regions and gives the call, so that the same code measures its memory first on null ops, as every step does, and tells by the trace what
// the op counts.
#pragma once

#include <functional>
#include <vector>

#include "config/config.h"
#include "ops/ops.h"
#include "param/param_store.h"
#include "trace/step_trace.h"

namespace hlat {

using OpCall = std::function<void(Ops&)>;

struct PlacedOp {
  OpCall call;
  OpCall prepare = {};  // makes inputs that other ops compute, or empty
  struct HostData {
    Tensor to;
    std::vector<std::byte> bytes;
  };
  std::vector<HostData> uploads = {};  // what must have a meaning: token ids, the constants of an update
};

struct OpCase {
  OpKind kind = OpKind::matmul;
  DType type = DType::f32;                      // of a step's activations
  std::function<PlacedOp(Memory&)> place = {};  // inputs from `saved`, which are never written; outputs from `io`
  bool needed = false;                          // measured however long it takes
  TracedOp traced = {};                         // what it counts; by trace_case
};

// Fills in what the case counts; returns the bytes of its tensors, without scratch.
size_t trace_case(OpCase& c);

// Shapes that sizes of ops that are bound by memory are made of.
struct CaseWidths {
  int64_t hidden = 2048, ffn = 5632, vocab = 32000, heads = 16, kv_heads = 16, head_dim = 128, tokens = 2048;
  Precision precision;
};
CaseWidths widths_of(const Config& config);

OpCase product_case(const TracedOp& op);
struct AttentionCaseShape {
  AttentionShape shape;
  DType type = DType::f32;
  bool backward = false;
};
OpCase attention_case(const AttentionCaseShape& a);
// An op that is bound by memory with about so many bytes; null `place` where a step has no such op.
OpCase memory_case(OpKind kind, double bytes, const CaseWidths& w);

// Products of hidden sizes 256 to 8192 with 512 to 32768 tokens, forward, by input and by weight, also of FP8 under a policy that has
// them; attention of 512 to 8192 tokens; ops
// bound by memory from 64 KiB to 256 MiB. All traced.
std::vector<OpCase> standard_cases(const CaseWidths& w);
// The distinct products and attentions of the step's traces, and its other ops by their bytes. All traced.
std::vector<OpCase> step_cases(const Config& config, const std::vector<const StepTrace*>& traces);

}  // namespace hlat
