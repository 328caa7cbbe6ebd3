package event

import "github.com/pawlrun/pawl/llm"

// frequent is an event that occurs in every cycle. It encodes and decodes its members
// without reflection; tests check the results against its tags.
type frequent interface {
	encode(e *encoder)
	decode(d *decoder) Data
}

func (x CycleStart) encode(e *encoder) {
	e.int("cycle", int64(x.Cycle))
	e.int("maxCycles", int64(x.MaxCycles))
}

func (CycleStart) decode(d *decoder) Data {
	return CycleStart{Cycle: int(d.int("cycle")), MaxCycles: int(d.int("maxCycles"))}
}

func (x BudgetReserved) encode(e *encoder) {
	e.text("id", x.ID)
	e.float("usd", x.USD)
	e.int("input", x.Input)
	e.int("output", x.Output)
	e.textIf("run", x.Run)
}

func (BudgetReserved) decode(d *decoder) Data {
	return BudgetReserved{ID: d.text("id"), USD: d.float("usd"), Input: d.int("input"), Output: d.int("output"), Run: d.text("run")}
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

func (BudgetCommitted) decode(d *decoder) Data {
	x := BudgetCommitted{
		ID: d.text("id"), USD: d.float("usd"), Input: d.int("input"), Output: d.int("output"), Estimated: d.bool("estimated"), Run: d.text("run"),
	}
	if d.name("usage") {
		u := decodeUsage(d)
		x.Usage = &u
	}
	x.Priced = d.bool("priced")
	return x
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

func (ModelRequested) decode(d *decoder) Data {
	x := ModelRequested{
		Attempt: int(d.int("attempt")), Model: d.text("model"), Purpose: Purpose(d.text("purpose")),
		RequestDigest: d.text("requestDigest"), RequestBytes: d.int("requestBytes"),
	}
	if d.name("prompt") {
		d.open('{')
		x.Prompt = &PromptSums{Fixed: d.text("fixed"), Kept: int(d.int("kept")), Messages: int(d.int("messages")), New: d.text("new")}
		d.close('}')
	}
	d.member("withheld", &x.Withheld)
	return x
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

func (ModelResponse) decode(d *decoder) Data {
	x := ModelResponse{
		Cycle: int(d.int("cycle")), Attempt: int(d.int("attempt")), TextLength: int(d.int("textLength")),
		ToolCalls:    list(d, "toolCalls", func() CallRef { return CallRef{CallID: d.text("callId"), Tool: d.text("tool")} }),
		FinishReason: llm.Finish(d.text("finishReason")), RawFinish: d.text("rawFinish"),
	}
	if d.name("usage") {
		x.Usage = decodeUsage(d)
	}
	x.Model = d.text("model")
	if d.name("cost") {
		d.open('{')
		x.Cost = llm.Cost{USD: d.float("usd"), Priced: d.bool("priced")}
		d.close('}')
	}
	x.Parts = list(d, "parts", func() llm.Part { return decodePart(d) })
	d.odd = d.odd || x.Parts == nil
	x.ResponseID, x.RequestID = d.text("responseId"), d.text("requestId")
	x.FinishDetail, x.Purpose = d.text("finishDetail"), Purpose(d.text("purpose"))
	return x
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

func decodeUsage(d *decoder) llm.Usage {
	d.open('{')
	u := llm.Usage{
		Input: d.int("input"), Output: d.int("output"), CacheRead: d.int("cacheRead"), CacheWrite: d.int("cacheWrite"),
		Reasoning: d.int("reasoning"), CacheWriteLong: d.int("cacheWriteLong"), Estimated: d.bool("estimated"),
	}
	d.close('}')
	return u
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

// decodePart reads a part without its brackets: prose or a call.
func decodePart(d *decoder) llm.Part {
	switch {
	case d.skip(`"type":"text"`):
		return llm.Text{Text: d.text("text"), Raw: d.raw("raw")}
	case d.skip(`"type":"tool_call"`):
		return llm.ToolCall{
			CallID: d.text("callId"), ProviderID: d.text("providerId"), Name: d.text("name"), Signature: d.text("signature"), Raw: d.raw("raw"),
		}
	}
	d.odd = true
	return nil
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

func (ToolCall) decode(d *decoder) Data {
	x := ToolCall{
		CallID: d.text("callId"), ProviderID: d.text("providerId"), Tool: d.text("tool"), Args: d.raw("args"), ArgsText: d.text("argsText"),
		Sent: d.raw("sent"), Effect: Effect(d.text("effect")), ReadOnly: d.bool("readOnly"), Concurrent: d.bool("concurrent"),
		Polling: d.bool("polling"), Agent: d.bool("agent"),
	}
	d.member("access", &x.Access)
	d.member("labels", &x.Labels)
	x.Describe, x.EditedBy, x.Digest = d.text("describe"), d.text("editedBy"), d.text("digest")
	d.member("facts", &x.Facts)
	d.member("problem", &x.Problem)
	return x
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

func (PolicyDecision) decode(d *decoder) Data {
	x := PolicyDecision{
		CallID: d.text("callId"), Decision: Decision(d.text("decision")), Rule: d.text("rule"), Reason: d.text("reason"),
		Sandbox: d.bool("sandbox"), Digest: d.text("digest"),
	}
	d.member("facts", &x.Facts)
	x.Step = d.text("step")
	return x
}

func (x ToolStarted) encode(e *encoder) {
	e.text("callId", x.CallID)
	e.int("attempt", int64(x.Attempt))
	e.textIf("key", x.Key)
}

func (ToolStarted) decode(d *decoder) Data {
	return ToolStarted{CallID: d.text("callId"), Attempt: int(d.int("attempt")), Key: d.text("key")}
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

func (ToolResult) decode(d *decoder) Data {
	x := ToolResult{
		CallID: d.text("callId"), Tool: d.text("tool"), Output: d.text("output"), IsError: d.bool("isError"), ErrorType: ErrorType(d.text("errorType")),
	}
	d.member("exitCode", &x.ExitCode)
	x.Limit, x.Truncated, x.Blob = d.text("limit"), d.bool("truncated"), d.text("blob")
	d.member("contains", &x.Contains)
	d.member("media", &x.Media)
	d.member("tools", &x.Tools)
	x.Untrusted, x.Private, x.EndsRun = d.bool("untrusted"), d.bool("private"), d.bool("endsRun")
	x.DurationMs, x.Retryable, x.Pin, x.Tree = d.int("durationMs"), d.bool("retryable"), d.text("pin"), d.text("tree")
	d.member("reached", &x.Reached)
	d.member("changed", &x.Changed)
	d.member("files", &x.Files)
	x.Raw, x.Structured = d.text("raw"), d.text("structured")
	return x
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

func (ToolResults) decode(d *decoder) Data {
	return ToolResults{Cycle: int(d.int("cycle")), Results: list(d, "results", func() ResultRef {
		return ResultRef{CallID: d.text("callId"), Tool: d.text("tool"), IsError: d.bool("isError")}
	})}
}
