package holder

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// ErrUnread is returned for a command that only an earlier driver of the run could have
// decrypted.
var ErrUnread = errors.New("holder: only the process that drove the run could have read this, and it no longer does; send it again")

// ErrNoKey is returned when a command cannot be sealed, because no process drives the
// run or its driver has no key.
var ErrNoKey = errors.New("holder: no process that drives the run has a key to seal a command to")

// Key decrypts commands sealed to this process. It is kept only in memory, so that no
// file on disk can decrypt a stored command.
type Key struct{ key hpke.PrivateKey }

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

// New returns a name like that of [Process], with the public key of this process as its
// random part. A process that reads the name in a lease can seal commands to it.
func New() (string, Key) {
	owner := Process()
	key, err := kem().GenerateKey()
	if err != nil {
		return owner, Key{} // without a key, no command can be sealed to this process
	}
	parts := strings.Split(owner, "/")
	parts[len(parts)-1] = base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes())
	return strings.Join(parts, "/"), Key{key: key}
}

var own = sync.OnceValues(New)

// Own returns one name of this process for all stores that no other process can read,
// such as those of runs in memory.
func Own() (string, Key) { return own() }

func keyOf(owner string) (hpke.PublicKey, error) {
	text := owner[strings.LastIndexByte(owner, '/')+1:]
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, ErrNoKey
	}
	key, err := kem().NewPublicKey(raw)
	if err != nil {
		return nil, ErrNoKey
	}
	return key, nil
}

// sealed is the part of a command that only the run's driver may read.
type sealed struct {
	Text  string          `json:"text,omitempty"`
	Media []llm.Media     `json:"media,omitempty"`
	Args  json.RawMessage `json:"args,omitempty"`
}

// binding returns the additional data that binds sealed content to its command.
func binding(c journal.Command) []byte {
	of := []string{"pawl/command", c.Run, string(c.Kind), c.CallID, c.By}
	if c.Remember {
		of = append(of, "remember")
	}
	about, _ := json.Marshal(of)
	return about
}

// Seal returns a command whose content only owner can read.
func Seal(owner string, c journal.Command) (journal.Command, error) {
	key, err := keyOf(owner)
	if err != nil {
		return c, err
	}
	content, err := json.Marshal(sealed{c.Text, c.Media, c.Args})
	if err != nil {
		return c, fmt.Errorf("holder: seal %s: %w", c.Kind, err)
	}
	if c.Sealed, err = hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), binding(c), content); err != nil {
		return c, fmt.Errorf("holder: seal %s: %w", c.Kind, err)
	}
	c.Text, c.Media, c.Args = "", nil, nil
	return c, nil
}

// Open returns the decrypted command, and whether this process can read it.
func (l Key) Open(c journal.Command) (journal.Command, bool) {
	if c.Sealed == nil {
		return c, true
	}
	var s sealed
	if l.key != nil {
		if content, err := hpke.Open(l.key, hpke.HKDFSHA256(), hpke.AES256GCM(), binding(c), c.Sealed); err == nil && json.Unmarshal(content, &s) == nil {
			c.Text, c.Media, c.Args, c.Sealed = s.Text, s.Media, s.Args, nil
			return c, true
		}
	}
	// A cancel is valid without its reason.
	c.Sealed = nil
	return c, c.Kind == journal.Cancel
}
