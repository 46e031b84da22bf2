#include "model/pipeline_links.h"

namespace hlat {

namespace {
constexpr int64_t kWindow = 256;  // messages of one tag keep their order, so far-away micro-batches may share one
}

PipelineLinks::PipelineLinks(Comm& pp, Region& region, DType dtype, const Shape& shape, int chunks)
    : pp_(pp), region_(region), dtype_(dtype), shape_(shape) {
  HLAT_CHECK(chunks * kWindow <= kChannelTags, "{} chunks: tags are for {}", chunks, kChannelTags / kWindow);
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  pp.reserve_messages(bytes, 2 * kSendBuffers + 1);  // both rings, and one that is received
}

Tensor PipelineLinks::buffer(Flow flow, int64_t rows) {
  Ring& ring = rings_[static_cast<size_t>(flow)];
  if (!ring.buffers[0].defined())
    for (Tensor& t : ring.buffers) t = region_.alloc(dtype_, shape_, flow == Flow::forward ? "activations to send" : "gradients to send");
  pp_.wait(ring.requests[ring.next]);
  ring.rows = rows;
  return ring.buffers[ring.next].rows(0, rows);
}

int PipelineLinks::tag(Flow flow, int64_t micro, int receiving_chunk) {
  return static_cast<int>(static_cast<int64_t>(flow) * kChannelTags + receiving_chunk * kWindow + micro % kWindow);
}

void PipelineLinks::send(Flow flow, int64_t micro, int chunk) {
  const int stages = pp_.size(), stage = pp_.rank();
  const bool ahead = flow == Flow::forward;
  const int peer = ahead ? (stage + 1) % stages : (stage + stages - 1) % stages;
  // Going round the end of the pipeline changes the chunk.
  const int to = ahead ? chunk + (stage + 1 == stages ? 1 : 0) : chunk - (stage == 0 ? 1 : 0);
  Ring& ring = rings_[static_cast<size_t>(flow)];
  ring.requests[ring.next] = pp_.send(ring.buffers[ring.next].rows(0, ring.rows), peer, tag(flow, micro, to));
  ring.next = (ring.next + 1) % kSendBuffers;
}

void PipelineLinks::recv(Flow flow, Tensor t, int64_t micro, int chunk) {
  const int stages = pp_.size(), stage = pp_.rank();
  const int peer = flow == Flow::forward ? (stage + stages - 1) % stages : (stage + 1) % stages;
  Request request = pp_.recv(t, peer, tag(flow, micro, chunk));
  pp_.wait(request);
}

void PipelineLinks::flush() {
  for (Ring& ring : rings_)
    for (Request& request : ring.requests) pp_.wait(request);
}

}  // namespace hlat
