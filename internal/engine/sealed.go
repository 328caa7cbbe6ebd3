package engine

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
var ErrUnread = errors.New("engine: only the process that drove the run could have read this, and it no longer does; send it again")

// ErrNoKey is why something that the process which drives a run alone may read
// cannot be sent: no process drives it, or that has no key.
var ErrNoKey = errors.New("engine: no process that drives the run has a key to seal a command to")

// ownerKey opens what was sealed to this process. The key is in no file, so
// that nothing on a disk opens a command that rests there.
type ownerKey struct{ key hpke.PrivateKey }

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

// newOwner is [ProcessOwner] with the public key of the process as its random
// part: who finds the owner of a lease can seal to it.
func newOwner() (string, ownerKey) {
	owner := ProcessOwner()
	key, err := kem().GenerateKey()
	if err != nil {
		return owner, ownerKey{} // such a process is sent nothing sealed
	}
	parts := strings.Split(owner, "/")
	parts[len(parts)-1] = base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes())
	return strings.Join(parts, "/"), ownerKey{key: key}
}

// ownOwner is the owner of what no other process can read, made once: such stores come
// with each run that needs none to last.
var ownOwner = sync.OnceValues(newOwner)

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

// sealTo returns a command whose content only an owner can read.
func sealTo(owner string, c journal.Command) (journal.Command, error) {
	key, err := keyOf(owner)
	if err != nil {
		return c, err
	}
	content, err := json.Marshal(sealed{c.Text, c.Media, c.Args})
	if err != nil {
		return c, fmt.Errorf("engine: seal %s: %w", c.Kind, err)
	}
	if c.Sealed, err = hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), binding(c), content); err != nil {
		return c, fmt.Errorf("engine: seal %s: %w", c.Kind, err)
	}
	c.Text, c.Media, c.Args = "", nil, nil
	return c, nil
}

// open returns a command as it was before it was sealed, and whether this
// process can read it.
func (l ownerKey) open(c journal.Command) (journal.Command, bool) {
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

// confide seals a command to whoever drives a run. The error is [ErrNoKey] where
// nobody does who could read it.
func (e *Engine) confide(row journal.Run, c journal.Command) (journal.Command, error) {
	if row.Owner == "" || !row.Expiry.After(e.opts.Now()) || OwnerGone(row.Owner) {
		return c, ErrNoKey
	}
	return sealTo(row.Owner, c)
}

// unreadable counts the commands that were sealed to somebody who is gone.
func (e *Engine) unreadable(sent []journal.Command) (n int) {
	for _, c := range sent {
		if _, readable := e.letters.open(c); !readable {
			n++
		}
	}
	return n
}
