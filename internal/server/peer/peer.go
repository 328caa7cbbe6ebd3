// Package peer passes the live events of runs between the servers of a shared journal.
//
// A live event, such as a piece of an answer, is never in the journal. A server with a
// reader of a run that another process drives asks that process for them, at the address
// that it registered in the journal ([journal.Driver]). Both prove that they have the
// driver's key, which only processes with access to the journal can read. While the
// driver cannot be reached, the reader gets the durable events alone.
package peer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/journal"
)

// Path is the path of a [Peer] at its server.
const Path = "/internal/live"

const (
	// challengeHeader has the challenge of the driver, nonceHeader that of the reader,
	// and proofHeader the proof of the side that sends it.
	challengeHeader = "Pawl-Challenge"
	nonceHeader     = "Pawl-Nonce"
	proofHeader     = "Pawl-Proof"
	// challengeValid is how long a challenge may be answered.
	challengeValid = 30 * time.Second
	// beat is the interval of empty lines on an idle stream; a reader gives up after
	// silence.
	beat    = 5 * time.Second
	silence = 20 * time.Second
	// slowest bounds one write.
	slowest = 30 * time.Second
)

// Options configures a peer.
type Options struct {
	Store    journal.Store
	Follower *follow.Follower
	// Owner names this process in the leases of its runs.
	Owner string
	// Go starts what reads from other servers.
	Go  func(func())
	Log *slog.Logger
}

// Peer serves the live events of the runs that this process drives, and reads those of
// other runs. It is safe for concurrent use.
type Peer struct {
	Options
	key []byte

	mu       sync.Mutex
	watching map[string]*watch
}

// watch is a tree whose live events are read.
type watch struct {
	readers int
	stop    func()
}

// New returns a peer with a key of its own.
func New(o Options) *Peer {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return &Peer{Options: o, key: key, watching: map[string]*watch{}}
}

// Key returns what proves that another process has read the registration of this one.
func (p *Peer) Key() []byte { return p.key }

// line is a live event on its way: what [follow.Source.Say] takes.
type line struct {
	Event event.Event `json:"event"`
	follow.Place
}

// proof returns the proof that side has the key. A challenge of each side makes it worth
// nothing on another connection.
func proof(key []byte, side, challenge, nonce, run string) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s %q %q %q", side, challenge, nonce, run)
	return hex.EncodeToString(mac.Sum(nil))
}

// proves compares a proof in constant time.
func proves(given string, key []byte, side, challenge, nonce, run string) bool {
	return hmac.Equal([]byte(given), []byte(proof(key, side, challenge, nonce, run)))
}

// challenge returns a challenge that [Peer.challenged] accepts for a while.
func (p *Peer) challenge() string {
	at := strconv.FormatInt(time.Now().UnixNano(), 10)
	return at + "." + proof(p.key, "challenge", at, "", "")
}

func (p *Peer) challenged(challenge string) bool {
	at, mac, _ := strings.Cut(challenge, ".")
	ns, err := strconv.ParseInt(at, 10, 64)
	return err == nil && proves(mac, p.key, "challenge", at, "", "") && time.Since(time.Unix(0, ns)) < challengeValid
}
