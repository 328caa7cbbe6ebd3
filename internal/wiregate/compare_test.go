package wiregate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
)

// differences collects what does not hold of an answer.
type differences []string

func (d *differences) want(field string, got, want any) {
	if diff := difference(want, got); diff != "" {
		*d = append(*d, fmt.Sprintf("%s (-want +got):\n%s", field, diff))
	}
}

// difference is cmp.Diff at the price of a plain comparison where there is none.
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func (d *differences) addf(format string, args ...any) { *d = append(*d, fmt.Sprintf(format, args...)) }

// compareAnswer holds a decoded answer against what at least two readers of
// the same bytes agree on.
func compareAnswer(a *Adapter, x *Exchange, resp *llm.Response) differences {
	var d differences
	e := &x.Expected
	if e.agreed("text") {
		d.want("text", resp.Parts.Text(), e.Text+e.Refusal)
	}
	if e.agreed("reasoning_text") {
		compareReasoning(&d, e, resp)
	}
	if e.agreed("tool_calls") {
		compareCalls(&d, e.ToolCalls, resp.Parts.ToolCalls())
	}
	if e.agreed("finish_raw") && e.Finish.Raw != nil {
		d.want("raw finish", resp.RawFinish, *e.Finish.Raw)
	}
	if f, ok := e.finish(); ok {
		d.want("finish", resp.Finish, f)
	}
	if e.agreed("usage") {
		compareUsage(&d, &e.Usage, resp.Usage)
	}
	want := append([]string{}, e.ItemOrder...)
	if a.MergeNeighbours {
		want = slices.Compact(want)
	}
	d.want("item order", itemOrder(a, resp.Parts), want)
	if e.ResponseID != "" {
		d.want("response id", resp.ID, e.ResponseID)
	}
	if e.Model != "" {
		d.want("model", resp.Model, e.Model)
	}
	return d
}

func compareReasoning(d *differences, e *Expected, resp *llm.Response) {
	var text strings.Builder
	signatures, sealed := []string{}, 0
	for _, p := range resp.Parts {
		r, ok := p.(llm.Reasoning)
		if !ok {
			continue
		}
		text.WriteString(r.Text)
		if r.Signature != "" {
			signatures = append(signatures, r.Signature)
		} else if r.Text == "" && len(r.Raw) > 0 {
			sealed++
		}
	}
	d.want("reasoning text", text.String(), e.Reasoning.Text)
	if e.Reasoning.Signatures != nil {
		d.want("signatures", signatures, e.Reasoning.Signatures)
	}
	if e.Reasoning.Redacted > 0 {
		d.want("redacted blocks", sealed, e.Reasoning.Redacted)
	}
}

func compareCalls(d *differences, want []ExpectedCall, got []llm.ToolCall) {
	if len(want) != len(got) {
		d.addf("tool calls: got %d, want %d: %+v", len(got), len(want), got)
		return
	}
	for i, w := range want {
		g := got[i]
		field := fmt.Sprintf("call %d ", i+1)
		d.want(field+"id", g.ProviderID, w.ID)
		d.want(field+"name", g.Name, w.Name)
		switch {
		case !w.Valid:
			d.want(field+"arguments that are no JSON", string(g.Args)+"|"+g.ArgsText, "|"+w.Raw)
		case isNull(w.Arguments):
			// A custom tool takes text; how an adapter wraps it is its own matter.
			if !strings.Contains(g.ArgsText+textOf(g.Args), w.Raw) {
				d.addf("%sinput: got %s %q, want %q", field, g.Args, g.ArgsText, w.Raw)
			}
		default:
			d.want(field+"arguments", meaning(g.Args), meaning(w.Arguments))
		}
	}
}

func compareUsage(d *differences, want *ExpectedUsage, got llm.Usage) {
	input := want.Input
	if input != nil && want.ToolUse != nil {
		both := *input + *want.ToolUse
		input = &both
	}
	for _, f := range []struct {
		name string
		got  int64
		want *int64
	}{
		{"input", got.Input, input}, {"output", got.Output, want.Output}, {"cache read", got.CacheRead, want.CacheRead},
		{"cache write", got.CacheWrite, want.CacheWrite}, {"reasoning", got.Reasoning, want.Reasoning},
	} {
		if f.want != nil {
			d.want("usage: "+f.name, f.got, *f.want)
		}
	}
}

func itemOrder(a *Adapter, parts llm.Parts) []string {
	order := []string{}
	for _, p := range parts {
		if name := a.ItemType(p); name != "" {
			order = append(order, name)
		}
	}
	if a.MergeNeighbours {
		return slices.Compact(order)
	}
	return order
}

// compareError holds a failed exchange against the recorded failure.
func compareError(x *Exchange, got *llm.Error) differences {
	var d differences
	e := x.Expected.Error
	if want, ok := errorClasses[x.Name]; ok {
		d.want("class", got.Class, want)
	} else {
		d.addf("the failure %s has no class in errorClasses", x.Name)
	}
	if !e.InStream {
		d.want("status", got.Status, x.Status)
	}
	if e.Message != "" {
		d.want("message", got.Message, e.Message)
	} else if got.Message == "" {
		d.addf("the error has no message")
	}
	if e.RequestID != "" {
		d.want("request id", got.RequestID, e.RequestID)
	}
	switch after := x.Header.Get("Retry-After"); {
	case after != "" && !got.HasRetryAfter:
		d.addf("Retry-After %q is lost", after)
	case after != "" && x.Header.Get("Retry-After-Ms") == "":
		d.want("retry after", strconv.Itoa(int(got.RetryAfter.Seconds())), after)
	}
	return d
}

// meaning decodes JSON so that two encodings of one value compare equal; what
// is no JSON is returned as its text.
func meaning(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(raw)
	}
	return v
}

func textOf(raw json.RawMessage) string {
	var wrapped map[string]string
	if json.Unmarshal(raw, &wrapped) == nil {
		for _, v := range wrapped {
			return v
		}
	}
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
