package event

import "cmp"

// Labels describe what a call reads and whether it can send data out, for the rule of
// two.
type Labels struct {
	// Untrusted: the result may contain text from a third party, and so instructions
	// that are not the owner's.
	Untrusted bool `json:"untrusted,omitempty"`
	// Private: the call can read data that must not leave the machine: files, an
	// environment, an account.
	Private bool `json:"private,omitempty"`
	// Outgoing: the call can send data to another machine or person. Fetching a web
	// page counts, because its address can contain data.
	Outgoing bool `json:"outgoing,omitempty"`
}

// Taint is what a run has read: untrusted text, private data. It is never
// cleared: the text may influence the model even after it has left the
// conversation.
type Taint struct {
	// Untrusted and Private are the calls that first read such data; nil if none
	// did.
	Untrusted *TaintSource `json:"untrusted,omitempty"`
	Private   *TaintSource `json:"private,omitempty"`
}

// With returns the union of both; the first sources are kept.
func (t Taint) With(other Taint) Taint {
	return Taint{Untrusted: cmp.Or(t.Untrusted, other.Untrusted), Private: cmp.Or(t.Private, other.Private)}
}

// Withheld are tools of the provider that a request does not offer: they send
// data within the answer, where no one can be asked.
type Withheld struct {
	Tools []string `json:"tools"`
	// Rule is the rule of the policy that withholds them.
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// TaintSource is the call that introduced a taint.
type TaintSource struct {
	// Run is the run that made the call: this one, or one that it continues.
	Run    string `json:"run"`
	Cycle  int    `json:"cycle"`
	CallID string `json:"callId,omitempty"`
	// Tool is the tool's name, or the provider's name for one that it runs itself.
	Tool string `json:"tool"`
}

// Fence marks untrusted text for the model. Even someone who knows the nonce
// cannot forge a marker, but no one outside should know it.
type Fence struct {
	Nonce string `json:"nonce"`
}

// Brings returns the taint of a source with these labels.
func (s TaintSource) Brings(untrusted, private bool) (t Taint) {
	if !untrusted && !private {
		return t
	}
	source := s
	if untrusted {
		t.Untrusted = &source
	}
	if private {
		t.Private = &source
	}
	return t
}
