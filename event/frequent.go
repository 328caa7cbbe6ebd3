package event

import "github.com/pawlrun/pawl/llm"

// frequent is an event that occurs in every cycle. It encodes its members without
// reflection; a test checks the result against its tags.
type frequent interface{ encode(*encoder) }

func (x CycleStart) encode(e *encoder) {
	e.int("cycle", int64(x.Cycle))
	e.int("maxCycles", int64(x.MaxCycles))
}

func (x BudgetReserved) encode(e *encoder) {
	e.text("id", x.ID)
	e.float("usd", x.USD)
	e.int("input", x.Input)
	e.int("output", x.Output)
	e.textIf("run", x.Run)
}

func (x BudgetCommitted) encode(e *encoder) {
	e.text("id", x.ID)
	e.float("usd", x.USD)
	e.int("input", x.Input)
	e.int("output", x.Output)
	e.boolIf("estimated", x.Estimated)
	e.textIf("run", x.Run)
	if x.Usage != nil {
		e.name("usage")
		encodeUsage(e, *x.Usage)
	}
	e.boolIf("priced", x.Priced)
}

func (x ModelRequested) encode(e *encoder) {
	e.int("attempt", int64(x.Attempt))
	e.text("model", x.Model)
	e.textIf("purpose", string(x.Purpose))
	e.textIf("requestDigest", x.RequestDigest)
	e.intIf("requestBytes", x.RequestBytes)
	if p := x.Prompt; p != nil {
		e.name("prompt")
		e.open('{')
		e.textIf("fixed", p.Fixed)
		e.int("kept", int64(p.Kept))
		e.int("messages", int64(p.Messages))
		e.textIf("new", p.New)
		e.close('}')
	}
	if x.Withheld != nil {
		e.member("withheld", x.Withheld)
	}
}

func (x ModelResponse) encode(e *encoder) {
	e.int("cycle", int64(x.Cycle))
	e.int("attempt", int64(x.Attempt))
	e.int("textLength", int64(x.TextLength))
	if x.ToolCalls == nil {
		e.member("toolCalls", nil)
	} else {
		e.name("toolCalls")
		e.open('[')
		for _, c := range x.ToolCalls {
			e.next()
			e.open('{')
			e.text("callId", c.CallID)
			e.text("tool", c.Tool)
			e.close('}')
		}
		e.close(']')
	}
	e.text("finishReason", string(x.FinishReason))
	e.textIf("rawFinish", x.RawFinish)
	e.name("usage")
	encodeUsage(e, x.Usage)
	e.text("model", x.Model)
	e.name("cost")
	e.open('{')
	e.float("usd", x.Cost.USD)
	e.bool("priced", x.Cost.Priced)
	e.close('}')
	e.name("parts")
	x.Parts.encode(e)
	e.textIf("responseId", x.ResponseID)
	e.textIf("requestId", x.RequestID)
	e.textIf("finishDetail", x.FinishDetail)
	e.textIf("purpose", string(x.Purpose))
}

func encodeUsage(e *encoder, u llm.Usage) {
	e.open('{')
	e.int("input", u.Input)
	e.int("output", u.Output)
	e.int("cacheRead", u.CacheRead)
	e.int("cacheWrite", u.CacheWrite)
	e.int("reasoning", u.Reasoning)
	e.intIf("cacheWriteLong", u.CacheWriteLong)
	e.boolIf("estimated", u.Estimated)
	e.close('}')
}

// encode writes the parts like MarshalJSON. Nearly every answer consists of prose and
// calls.
func (a Answer) encode(e *encoder) {
	e.open('[')
	for _, p := range a {
		e.next()
		switch p := p.(type) {
		case llm.Text:
			e.open('{')
			e.text("type", "text")
			e.text("text", p.Text)
			if len(p.Raw) > 0 {
				e.member("raw", p.Raw)
			}
			e.close('}')
		case llm.ToolCall:
			e.open('{')
			e.text("type", "tool_call")
			e.textIf("callId", p.CallID)
			e.textIf("providerId", p.ProviderID)
			e.text("name", p.Name)
			e.textIf("signature", p.Signature)
			if len(p.Raw) > 0 {
				e.member("raw", p.Raw)
			}
			e.close('}')
		default:
			e.element(llm.Parts{p})
		}
	}
	e.close(']')
}

func (x ToolCall) encode(e *encoder) {
	e.text("callId", x.CallID)
	e.textIf("providerId", x.ProviderID)
	e.text("tool", x.Tool)
	if len(x.Args) > 0 {
		e.name("args")
		e.raw(x.Args)
	}
	e.textIf("argsText", x.ArgsText)
	if len(x.Sent) > 0 {
		e.name("sent")
		e.raw(x.Sent)
	}
	e.text("effect", string(x.Effect))
	e.boolIf("readOnly", x.ReadOnly)
	e.boolIf("concurrent", x.Concurrent)
	e.boolIf("polling", x.Polling)
	e.boolIf("agent", x.Agent)
	if len(x.Access) > 0 {
		e.member("access", x.Access)
	}
	if x.Labels != (Labels{}) {
		e.name("labels")
		e.open('{')
		e.boolIf("untrusted", x.Labels.Untrusted)
		e.boolIf("private", x.Labels.Private)
		e.boolIf("outgoing", x.Labels.Outgoing)
		e.close('}')
	}
	e.textIf("describe", x.Describe)
	e.textIf("editedBy", x.EditedBy)
	e.text("digest", x.Digest)
	if x.Facts != nil {
		e.member("facts", x.Facts)
	}
	if x.Problem != nil {
		e.member("problem", x.Problem)
	}
}

func (x PolicyDecision) encode(e *encoder) {
	e.text("callId", x.CallID)
	e.text("decision", string(x.Decision))
	e.text("rule", x.Rule)
	e.textIf("reason", x.Reason)
	e.boolIf("sandbox", x.Sandbox)
	e.text("digest", x.Digest)
	if x.Facts != nil {
		e.member("facts", x.Facts)
	}
	e.textIf("step", x.Step)
}

func (x ToolStarted) encode(e *encoder) {
	e.text("callId", x.CallID)
	e.int("attempt", int64(x.Attempt))
	e.textIf("key", x.Key)
}

func (x ToolResult) encode(e *encoder) {
	e.text("callId", x.CallID)
	e.text("tool", x.Tool)
	e.text("output", x.Output)
	e.bool("isError", x.IsError)
	e.textIf("errorType", string(x.ErrorType))
	if x.ExitCode != nil {
		e.int("exitCode", int64(*x.ExitCode))
	}
	e.textIf("limit", x.Limit)
	e.boolIf("truncated", x.Truncated)
	e.textIf("blob", x.Blob)
	if len(x.Contains) > 0 {
		e.member("contains", x.Contains)
	}
	if len(x.Media) > 0 {
		e.member("media", x.Media)
	}
	if len(x.Tools) > 0 {
		e.member("tools", x.Tools)
	}
	e.boolIf("untrusted", x.Untrusted)
	e.boolIf("private", x.Private)
	e.boolIf("endsRun", x.EndsRun)
	e.intIf("durationMs", x.DurationMs)
	e.boolIf("retryable", x.Retryable)
	e.textIf("pin", x.Pin)
	e.textIf("tree", x.Tree)
	if len(x.Reached) > 0 {
		e.member("reached", x.Reached)
	}
	if len(x.Changed) > 0 {
		e.member("changed", x.Changed)
	}
	if len(x.Files) > 0 {
		e.member("files", x.Files)
	}
	e.textIf("raw", x.Raw)
	e.textIf("structured", x.Structured)
}

func (x ToolResults) encode(e *encoder) {
	e.int("cycle", int64(x.Cycle))
	if x.Results == nil {
		e.member("results", nil)
		return
	}
	e.name("results")
	e.open('[')
	for _, r := range x.Results {
		e.next()
		e.open('{')
		e.text("callId", r.CallID)
		e.text("tool", r.Tool)
		e.bool("isError", r.IsError)
		e.close('}')
	}
	e.close(']')
}
