package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Reading names how this package interprets rules and facts. It changes
// whenever the same rules would decide otherwise about the same call, so that
// an approval is not used under a policy that its giver did not know.
const Reading = "7"

// Version names the rules together with how they are read: "1/0f3a…".
func (r Rules) Version() string {
	text, _ := json.Marshal(r) // of values that always have JSON
	sum := sha256.Sum256(text)
	return Reading + "/" + hex.EncodeToString(sum[:8])
}
