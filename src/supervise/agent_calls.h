// Where agents call the launcher, a port that anybody can reach: whoever does not say within seconds who it is, or says it in another
// form, is sent away, and no more than some wait at a time.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "supervise/line_socket.h"

namespace hlat {

struct AgentCall {
  LineSocket line;
  std::string token, name, version;  // as the caller says
};

class AgentCalls {
 public:
  int port() const { return listener_.port(); }
  std::vector<int> fds() const;  // that can be read when there is something to take
  std::vector<AgentCall> take(double now);
  size_t waiting() const { return callers_.size(); }  // that have not said who they are

 private:
  struct Caller {
    LineSocket line;
    double since;
  };
  LineListener listener_;
  std::deque<Caller> callers_;
};

}  // namespace hlat
