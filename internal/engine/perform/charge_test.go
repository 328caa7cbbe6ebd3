package perform

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

// The charge of a failed call depends on how far it came: nothing if it did not reach
// the provider or was declined, and more than nothing if the model may have worked.
func TestAFailedCallIsChargedByHowFarItCame(t *testing.T) {
	var ledger budget.Ledger
	if err := ledger.Reserve(budget.Reservation{ID: "1", Amount: budget.Amount{Input: 1000, Output: 500}}); err != nil {
		t.Fatal(err)
	}
	call := &machine.CallModel{Admission: ledger.Admission("1")}
	worst := llm.Usage{Input: 1000, Output: 500, Estimated: true}
	reported := llm.Usage{Input: 900, Output: 20}
	for _, c := range []struct {
		name    string
		partial *llm.Response
		err     *llm.Error
		want    llm.Usage
	}{
		{"no connection", nil, &llm.Error{Class: llm.ClassNetwork, Err: &net.OpError{Op: "dial"}}, llm.Usage{}},
		{"no such host", nil, &llm.Error{Class: llm.ClassNetwork, Err: &net.DNSError{}}, llm.Usage{}},
		{"nothing was sent", nil, &llm.Error{Class: llm.ClassNetwork, Unsent: true}, llm.Usage{}},
		{"stopped before anything was sent", nil, &llm.Error{Class: llm.ClassInterrupted, Unsent: true}, llm.Usage{}},
		{"the provider said no", nil, &llm.Error{Class: llm.ClassOverloaded, Status: 529}, llm.Usage{}},
		{"the provider is out of order", nil, &llm.Error{Class: llm.ClassOverloaded, Status: 502}, llm.Usage{}},
		{"a gateway waited for the answer and gave up", nil, &llm.Error{Class: llm.ClassOverloaded, Status: 504}, worst},
		{"a proxy waited for the answer and gave up", nil, &llm.Error{Class: llm.ClassOverloaded, Status: 524}, worst},
		{"the provider gave up its own answer", nil, &llm.Error{Class: llm.ClassNetwork, Status: 408}, worst},
		{"sent, and no answer came", nil, &llm.Error{Class: llm.ClassNetwork, Err: errors.New("EOF")}, worst},
		{"the connection broke after it was made", nil, &llm.Error{Class: llm.ClassNetwork, Err: &net.OpError{Op: "read"}}, worst},
		{"stopped in mid-flight", nil, &llm.Error{Class: llm.ClassInterrupted, Err: context.Canceled}, worst},
		{"the adapter broke", nil, &llm.Error{Class: llm.ClassInvalid, Err: errBroken}, worst},
		{"broken off after its usage was reported", &llm.Response{Usage: reported}, &llm.Error{Class: llm.ClassNetwork}, reported},
		{
			"broken off after some text", &llm.Response{Parts: llm.Parts{llm.Text{Text: "half an answer"}}, Usage: llm.Usage{Estimated: true}},
			&llm.Error{Class: llm.ClassNetwork}, llm.Usage{Input: 1000, Output: 14, Estimated: true},
		},
		{
			"broken off with a report that cannot be one", &llm.Response{Parts: llm.Parts{llm.Text{Text: "half"}}, Usage: llm.Usage{Input: -900, Output: 20}},
			&llm.Error{Class: llm.ClassNetwork}, llm.Usage{Input: 1000, Output: 4, Estimated: true},
		},
		{
			"broken off with a report of nothing", &llm.Response{Parts: llm.Parts{llm.Text{Text: "half"}}},
			&llm.Error{Class: llm.ClassNetwork}, llm.Usage{Input: 1000, Output: 4, Estimated: true},
		},
	} {
		if diff := cmp.Diff(c.want, charged(call, c.partial, 0, c.err)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}

// Many services with a compatible protocol report no usage, or impossible usage such as
// zero tokens. Such answers are not free, and negative figures give nothing back.
func TestAnAnswerIsChargedByWhatCameWhereItsUsageIsNotReported(t *testing.T) {
	var ledger budget.Ledger
	if err := ledger.Reserve(budget.Reservation{ID: "1", Amount: budget.Amount{Input: 1000, Output: 500}}); err != nil {
		t.Fatal(err)
	}
	call := &machine.CallModel{Admission: ledger.Admission("1")}
	parts := llm.Parts{llm.Reasoning{Text: "hm"}, llm.Text{Text: "I look"}, llm.ToolCall{Name: "ls", Args: []byte(`{}`)}}
	came := llm.Usage{Input: 1000, Output: 12, Estimated: true}
	whole := llm.Usage{Input: 900, Output: 20, CacheRead: 800, CacheWrite: 50, CacheWriteLong: 50, Reasoning: 3}
	for name, c := range map[string]struct{ reported, want llm.Usage }{
		"reported":                       {whole, whole},
		"not reported":                   {llm.Usage{Estimated: true}, came},
		"the input alone":                {llm.Usage{Input: 900, Estimated: true}, llm.Usage{Input: 900, Output: 12, Estimated: true}},
		"nothing at all":                 {llm.Usage{}, came},
		"no input":                       {llm.Usage{Output: 20}, llm.Usage{Input: 1000, Output: 20, Estimated: true}},
		"no output":                      {llm.Usage{Input: 900, CacheRead: 800}, llm.Usage{Input: 900, CacheRead: 800, Output: 12, Estimated: true}},
		"cached tokens beside the input": {llm.Usage{Input: 100, Output: 20, CacheRead: 800, CacheWrite: 50}, llm.Usage{Input: 950, Output: 20, CacheRead: 800, CacheWrite: 50}},
		"cached tokens and no input":     {llm.Usage{Output: 20, CacheRead: 800}, llm.Usage{Input: 1000, Output: 20, CacheRead: 800, Estimated: true}},
		"reasoning beside the output":    {llm.Usage{Input: 900, Output: 20, Reasoning: 30}, llm.Usage{Input: 900, Output: 50, Reasoning: 30}},
		"less than no input":             {llm.Usage{Input: -1, Output: 20}, came},
		"less than no output":            {llm.Usage{Input: 900, Output: -20}, came},
		"less than nothing cached":       {llm.Usage{Input: 900, Output: 20, CacheRead: -1e6}, came},
		"less than nothing written":      {llm.Usage{Input: 900, Output: 20, CacheWrite: -1e6}, came},
		"more than sums of it can say":   {llm.Usage{Input: 1 << 62, Output: 20}, came},
	} {
		if diff := cmp.Diff(c.want, used(call, &llm.Response{Parts: parts, Usage: c.reported}, 0)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	for name, came := range map[string]llm.Parts{
		"a service's own item":     {llm.Item{Raw: []byte(`{"type":"web"}`)}},
		"arguments that are text":  {llm.ToolCall{ArgsText: "fourteen bytes"}},
		"reasoning that is sealed": {llm.Reasoning{Text: "hm", Signature: "fourteen bytes", Raw: []byte("{}")}},
	} {
		want := llm.Usage{Input: 1000, Output: 14, Estimated: true}
		if diff := cmp.Diff(want, used(call, &llm.Response{Parts: came, Usage: llm.Usage{Estimated: true}}, 0)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	unknown := llm.Usage{Input: 1000, Output: 500, Estimated: true}
	if got := used(call, &llm.Response{Finish: llm.FinishEnd}, 0); got != unknown {
		t.Errorf("an answer of nothing, of which nothing is reported, is charged %+v", got)
	}
	empty := llm.Response{Usage: llm.Usage{Input: 900}}
	if got := used(call, &empty, 0); got != empty.Usage {
		t.Errorf("an answer of nothing that is reported as such is charged %+v", got)
	}
	queued := llm.Response{Finish: llm.FinishPause, Usage: llm.Usage{Estimated: true}}
	if got := used(call, &queued, 0); got != queued.Usage {
		t.Errorf("what waits in a queue is charged %+v", got)
	}
}
