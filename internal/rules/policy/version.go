package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Reading is the version of this package's interpretation of rules and facts. It
// changes whenever the same rules could decide differently about the same call, so that
// an approval does not apply under a policy that its giver did not know.
const Reading = "7"

// Version identifies the rules and their interpretation: "1/0f3a…".
func (r Rules) Version() string {
	text, _ := json.Marshal(r) // these types always encode
	sum := sha256.Sum256(text)
	return Reading + "/" + hex.EncodeToString(sum[:8])
}
