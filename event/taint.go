package event

// Labels say of a call what the rule of two is about: which text it brings in
// and whether it can carry something out (FIELD section 9).
type Labels struct {
	// Untrusted: the result may hold text that somebody else wrote, and so
	// instructions that are not the owner's.
	Untrusted bool `json:"untrusted,omitempty"`
	// Private: the call can read what must not leave: files, an environment,
	// an account.
	Private bool `json:"private,omitempty"`
	// Outgoing: the call can carry something to another machine or person. A
	// web page that is only fetched is asked for by an address, and an address
	// can say a lot.
	Outgoing bool `json:"outgoing,omitempty"`
}

// Taint is what a run has taken in. It never becomes less: whatever was read is
// in what the model does next, also when the text itself has left the
// conversation.
type Taint struct {
	// Untrusted and Private are where such text first came in; nil where none did.
	Untrusted *TaintSource `json:"untrusted,omitempty"`
	Private   *TaintSource `json:"private,omitempty"`
}

// Withheld are tools of a provider's own that a request does not name: they
// send within the answer, where nobody can be asked.
type Withheld struct {
	Tools []string `json:"tools"`
	// Rule is the rule of the policy that withholds them.
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// TaintSource is the call that brought something in.
type TaintSource struct {
	// Run is the run that made the call: this one, or one that it goes on from.
	Run    string `json:"run"`
	Cycle  int    `json:"cycle"`
	CallID string `json:"callId,omitempty"`
	// Tool is the tool's name, or the provider's for one that it runs itself.
	Tool string `json:"tool"`
}

// Fence is what marks untrusted text for the model. Whoever knows the nonce
// still cannot forge a marker, but nobody outside should know it.
type Fence struct {
	Nonce string `json:"nonce"`
}
