package agent

import (
	"encoding/json"
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// call is one tool call of the current cycle, from request to settlement.
type call struct {
	index    int
	ref      llm.ToolCall
	resolved *event.ToolCall
	verdict  *event.PolicyDecision
	pending  *event.ToolPendingApproval
	approval *event.ToolApprovalResolved
	attempt  int
	running  bool
	orphan   bool
	result   *event.ToolResult
}

func (c *call) settle(d *event.ToolResult) {
	if c.result == nil {
		c.result = d
	}
	c.running, c.orphan = false, false
}

// allowed says that nothing stands between the call and its dispatch.
func (c *call) allowed() bool {
	if c.result != nil || c.running || c.verdict == nil {
		return false
	}
	if c.verdict.Decision == event.DecisionAsk {
		return c.approval != nil && c.approval.Kind == event.ApprovalApproved
	}
	return c.verdict.Decision == event.DecisionAllow || c.verdict.Decision == event.DecisionSandbox
}

// repeatable says that an orphaned attempt may simply run again.
func (c *call) repeatable() bool {
	return c.resolved.Effect == event.EffectPure || c.resolved.Effect == event.EffectIdempotent
}

// failed is the settlement of a call that did not run, or not to its end, in
// the shape that the model sees (ALDO-51, HAR-31, HAR-32).
func (c *call) failed(kind event.ErrorType, message string) event.ToolResult {
	return event.ToolResult{
		CallID: c.ref.CallID, Tool: c.ref.Name, IsError: true, ErrorType: kind,
		Output: ErrorOutput(kind, message),
	}
}

// rejected is the settlement of a call that a person declined (ALDO-61).
func (c *call) rejected(kind event.ErrorType, reason string) event.ToolResult {
	return event.ToolResult{
		CallID: c.ref.CallID, Tool: c.ref.Name, IsError: true, ErrorType: kind,
		Output: `{"rejected":true,"reason":` + quote(reason) + `}`,
	}
}

// ErrorOutput is the text of a structured error, as the model sees it.
func ErrorOutput(kind event.ErrorType, message string) string {
	return `{"error":` + quote(message) + `,"type":"` + string(kind) + `"}`
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return string(b)
}
