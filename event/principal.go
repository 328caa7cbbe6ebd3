package event

// Principal is who said something to a run: started it, told it, or decided about
// it. Events that older versions wrote have none.
type Principal struct {
	Name string `json:"name"`
	// Role is the role in which it was said.
	Role  string `json:"role,omitempty"`
	Proof Proof  `json:"proof,omitempty"`
}

// Proof is how it is known who a principal is.
type Proof string

// The proofs.
const (
	// ProofUser: the operating system says whose process it is.
	ProofUser Proof = "user"
	// ProofToken: a token of that name came with the request.
	ProofToken Proof = "token"
	// ProofNone: nothing was proven, because the server was started with --no-auth.
	ProofNone Proof = "none"
)
