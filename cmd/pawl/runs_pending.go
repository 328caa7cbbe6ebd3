package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// pendingRef is a call that waits for a decision.
type pendingRef struct {
	// Run is the run that made the call: the page's own, or one that it started.
	Run       string          `json:"run"`
	CallID    string          `json:"callId"`
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args,omitempty"`
	Digest    string          `json:"digest"`
	Rule      string          `json:"rule,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Risk      event.Risk      `json:"risk,omitempty"`
	Policy    string          `json:"policy,omitempty"`
	ExpiresAt *time.Time      `json:"expiresAt,omitempty"`
}

// rows show what is asked, why, until when, and how to answer.
func (r pendingRef) rows(shown journal.Run, now time.Time, pawl string, row func(name, value string)) {
	row("waits for", fmt.Sprintf("%s %s %s", r.CallID, r.Tool, firstLine(string(r.Args), 300)))
	if r.Run != shown.ID {
		row("  in", "run "+r.Run+", which this one started")
	}
	row("  by", firstLine(r.Rule, 100))
	row("  because", firstLine(r.Reason, 200))
	row("  risk", string(r.Risk))
	row("  digest", r.Digest)
	if r.ExpiresAt != nil && !now.Before(*r.ExpiresAt) {
		row("  expires", "at "+clock(*r.ExpiresAt)+", which is over: '"+pawl+" runs resume "+toResume(shown)+"' goes on without it")
		return
	}
	if r.ExpiresAt != nil {
		row("  expires", "at "+clock(*r.ExpiresAt))
	}
	call := strings.TrimPrefix(r.CallID, r.Run+"-")
	row("  decide", fmt.Sprintf("%s runs approve %s %s, or %s runs reject %s %s --reason \"…\"", pawl, r.Run, call, pawl, r.Run, call))
}

// asked notes a question. One that was asked before, under other arguments or
// another policy, is void.
func (p *page) asked(d event.ToolPendingApproval) {
	p.decided(d.CallID)
	p.Pending = append(p.Pending, pendingOf(p.ID, d))
}

func pendingOf(run string, d event.ToolPendingApproval) pendingRef {
	return pendingRef{
		Run: run, CallID: d.CallID, Tool: d.Tool, Args: d.Args, Digest: d.Digest, Rule: d.Rule, Reason: d.Reason,
		Risk: d.Risk, Policy: d.Policy, ExpiresAt: d.ExpiresAt,
	}
}

func (p *page) decided(callID string) {
	p.Pending = slices.DeleteFunc(p.Pending, func(r pendingRef) bool { return r.CallID == callID })
}
