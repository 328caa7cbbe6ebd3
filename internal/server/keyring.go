package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/tokens"
)

// keyring is a server's copy of a file of tokens. It reloads the file when it
// changes, and ends requests whose token is no longer valid. A keyring without a
// path keeps its tokens for the life of the server.
type keyring struct {
	path string
	log  *slog.Logger

	mu sync.Mutex
	// file describes the file as last read, nil if it did not exist.
	file    os.FileInfo
	entries []tokens.Entry
	// open holds the running requests of each token.
	open map[*admitted]bool
}

// admitted is a running request.
type admitted struct {
	entry tokens.Entry
	end   context.CancelCauseFunc
}

// errRevoked is the cause that ends requests whose token is no longer valid.
var errRevoked = errors.New("server: the token was revoked, or has expired")

// recheck bounds how long a revoked token stays valid.
const recheck = time.Second

// newKeyring reads a file of tokens and hashes the plain ones in it.
func newKeyring(path string, log *slog.Logger) (*keyring, error) {
	plain, err := tokens.Seal(path)
	if err != nil {
		return nil, err
	}
	for _, name := range plain {
		log.Warn("a token was in its file as it is; it is hashed now, so keep it elsewhere", "name", name, "file", path)
	}
	k := &keyring{path: path, log: log, open: map[*admitted]bool{}}
	k.refresh()
	if len(k.entries) == 0 {
		return nil, fmt.Errorf("server: there is no token in %s; 'pawl token create' makes one", path)
	}
	return k, nil
}

// keyringOf returns a keyring with one token.
func keyringOf(e tokens.Entry) *keyring {
	return &keyring{entries: []tokens.Entry{e}, open: map[*admitted]bool{}}
}

// sendToken is the advice for a client without a valid token.
const sendToken = "send the header Authorization: Bearer TOKEN; 'pawl token show' prints the token of this start, and where the server has a file of tokens 'pawl token create' makes one"

// refresh reloads a changed file. While it cannot be read, no token is valid.
func (k *keyring) refresh() {
	if k.path == "" {
		return
	}
	info, err := os.Stat(k.path)
	if err == nil && k.file != nil && os.SameFile(info, k.file) && info.ModTime().Equal(k.file.ModTime()) && info.Size() == k.file.Size() {
		return
	}
	entries, readErr := tokens.Read(k.path)
	if readErr != nil {
		k.log.Error("no token counts until the file can be read", "error", readErr)
	}
	k.file, k.entries = info, entries
}

// admit checks a token. The returned context ends when the token is revoked.
func (k *keyring) admit(ctx context.Context, token string) (p event.Principal, within context.Context, done func(), ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refresh()
	entry, ok := tokens.Find(k.entries, token, time.Now())
	if !ok {
		return p, ctx, nil, false
	}
	within, end := context.WithCancelCause(ctx)
	s := &admitted{entry, end}
	k.open[s] = true
	return entry.Principal(), within, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.open, s)
		end(nil)
	}, true
}

// watch ends requests whose tokens are no longer valid.
func (k *keyring) watch(ctx context.Context) {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		k.mu.Lock()
		k.refresh()
		for s := range k.open {
			if !k.counts(s.entry) {
				s.end(errRevoked)
			}
		}
		k.mu.Unlock()
	}
}

// counts reports whether an entry is still in the file, with its role.
func (k *keyring) counts(e tokens.Entry) bool {
	for _, now := range k.entries {
		if now.Name == e.Name && now.Hash == e.Hash && now.Role == e.Role {
			return !now.Expired(time.Now())
		}
	}
	return false
}
