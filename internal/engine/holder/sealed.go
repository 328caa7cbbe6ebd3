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

// ErrUnread is returned for what only the process that drove a run could have
// read, when it drives the run no more.
var ErrUnread = errors.New("holder: only the process that drove the run could have read this, and it no longer does; send it again")

// ErrNoKey is why something that the process which drives a run alone may read
// cannot be sent: no process drives it, or that has no key.
var ErrNoKey = errors.New("holder: no process that drives the run has a key to seal a command to")

// Key opens what was sealed to this process. The key is in no file, so
// that nothing on a disk opens a command that rests there.
type Key struct{ key hpke.PrivateKey }

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

// New returns a name as [Process] does, with the public key of this process as its
// random part: a process that finds the name in a lease can seal to it.
func New() (string, Key) {
	owner := Process()
	key, err := kem().GenerateKey()
	if err != nil {
		return owner, Key{} // such a process is sent nothing sealed
	}
	parts := strings.Split(owner, "/")
	parts[len(parts)-1] = base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes())
	return strings.Join(parts, "/"), Key{key: key}
}

var own = sync.OnceValues(New)

// Own returns the name of this process for leases that no other process can read, made
// once: such stores come with each run that needs none to last.
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

// sealed is what of a command is for the eyes of a run's driver alone.
type sealed struct {
	Text  string          `json:"text,omitempty"`
	Media []llm.Media     `json:"media,omitempty"`
	Args  json.RawMessage `json:"args,omitempty"`
}

// binding ties sealed content to the command that it was sent with.
func binding(c journal.Command) []byte {
	about, _ := json.Marshal([]string{"pawl/command", c.Run, string(c.Kind), c.CallID, c.By})
	return about
}

// Seal returns a command whose content only an owner can read.
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

// open returns a command as it was before it was sealed, and whether this
// process can read it.
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
	// A cancel counts without its reason.
	c.Sealed = nil
	return c, c.Kind == journal.Cancel
}
