package engine

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
)

// What a failed call costs follows from how far it came (FIELD F27): nothing
// where the provider was not reached or said no, and never nothing where it may
// have worked.
func TestAFailedCallIsChargedByHowFarItCame(t *testing.T) {
	ledger, err := budget.Ledger{}.Reserve(budget.Reservation{ID: "1", Amount: budget.Amount{Input: 1000, Output: 500}})
	if err != nil {
		t.Fatal(err)
	}
	call := machine.CallModel{Admission: ledger.Admission("1")}
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
		{"sent, and no answer came", nil, &llm.Error{Class: llm.ClassNetwork, Err: errors.New("EOF")}, worst},
		{"stopped in mid-flight", nil, &llm.Error{Class: llm.ClassInterrupted, Err: context.Canceled}, worst},
		{"the adapter broke", nil, &llm.Error{Class: llm.ClassInvalid, Err: errBroken}, worst},
		{"broken off after its usage was reported", &llm.Response{Usage: reported}, &llm.Error{Class: llm.ClassNetwork}, reported},
		{
			"broken off after some text", &llm.Response{Parts: llm.Parts{llm.Text{Text: "half an answer"}}, Usage: llm.Usage{Estimated: true}},
			&llm.Error{Class: llm.ClassNetwork}, llm.Usage{Input: 1000, Output: 14, Estimated: true},
		},
	} {
		if diff := cmp.Diff(c.want, charged(call, c.partial, c.err)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}
