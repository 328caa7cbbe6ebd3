package event

// Principal is the user or program that started a run, sent it a command, or decided
// about it. Events of older versions have none.
type Principal struct {
	Name string `json:"name"`
	// Role is the role in which the principal acted.
	Role  string `json:"role,omitempty"`
	Proof Proof  `json:"proof,omitempty"`
}

// Proof is how a principal was authenticated.
type Proof string

// The proofs.
const (
	// ProofUser: the operating system identified the user of the process.
	ProofUser Proof = "user"
	// ProofToken: the request contained a token with that name.
	ProofToken Proof = "token"
	// ProofNone: not authenticated, because the server was started with --no-auth.
	ProofNone Proof = "none"
)
